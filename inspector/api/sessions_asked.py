"""Which sessions the API lists: the filters of the session list's own address, by the same names."""

from __future__ import annotations

from datetime import date
from typing import Annotated, Any

from ninja import Schema
from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from inspector.pages.shared.kinds import KINDS
from inspector.pages.shared.listing import HAS, SEVERITY, SORTS, Listing
from inspector.pages.shared.parameters import MAX_TEXT, text

ALLOWED: dict[str, list[Any]] = {
    "kind": ["", *KINDS],
    "severity": [*SEVERITY],
    "has": [*HAS],
    "sort": [order + name for name in SORTS for order in ("", "-")],
}
Words = Annotated[str, Field(max_length=MAX_TEXT), AfterValidator(text)]
Day = Annotated[date, Field(ge=date(1900, 1, 1), le=date(9998, 12, 31))]
Amount = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
NEWEST = "-added"


def _some_of(name: str) -> dict[str, Any]:
    return {"items": {"type": "string", "enum": ALLOWED[name]}}


class SessionFilter(Schema):
    """All that is given must apply; of several values of `severity` one, of `has` each."""

    q: Words = Field("", description="words that the title, model, agent, format or file name contains")
    agent: Words = Field("", description="exactly this agent")
    format: Words = Field("", description="exactly this format")
    model: Words = Field("", description="exactly this model")
    tag: Words = Field("", description="with this tag")
    kind: str = Field("", description="with a finding of this kind", json_schema_extra={"enum": ALLOWED["kind"]})
    severity: list[str] = Field([], description="of the verdict", json_schema_extra=_some_of("severity"))
    has: list[str] = Field([], description="at least one of these", json_schema_extra=_some_of("has"))
    since: Day | None = Field(None, description="the first day, UTC, on which it may have started")
    until: Day | None = Field(None, description="the last day, UTC, on which it may have started")
    min_size: Amount | None = Field(None, description="megabytes of its recording, at least")
    max_size: Amount | None = Field(None, description="megabytes of its recording, at most")
    min_peak: Amount | None = Field(
        None, description="per cent of the window that the largest request filled, at least"
    )
    max_peak: Amount | None = Field(None, description="per cent of the window that the largest request filled, at most")
    sort: str = Field(
        NEWEST, description="the order; a minus turns it round", json_schema_extra={"enum": ALLOWED["sort"]}
    )

    @field_validator("kind", "severity", "has", "sort")
    @classmethod
    def is_known(cls, value: str | list[str], info: ValidationInfo) -> str | list[str]:
        """Refuses, with what is allowed, a name that the list does not know."""
        allowed = ALLOWED[info.field_name or ""]
        for name in [value] if isinstance(value, str) else value:
            if name not in allowed:
                raise ValueError(f"“{text(name)[:40]}” is none of {', '.join(filter(None, allowed))}")
        return value

    def listing(self) -> Listing:
        """The same as the list's address asks it."""
        given: dict[str, Any] = self.model_dump()
        return Listing(**{**given, "severity": tuple(given["severity"]), "has": tuple(given["has"])})
