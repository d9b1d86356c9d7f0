"""The form of a share: what is typed, checked, as the request that a job works on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from guard_core.report import LEVELS, ReportOptions, ReportPart
from guard_core.report.document import Remark
from inspector.pages.shared.numbers import compaction_index, step_index
from inspector.pages.shared.share_fields import common, plain, remark_lines
from inspector.sharing.making import ShareRequest

LEVEL_WORDS = {
    "numbers": "Numbers only: no words of the session except the names of agent and models",
    "names": "Numbers and names: also the session's title and tools",
    "text": "With text: also instructions, quoted requests and summaries",
}
SCOPES = {
    "": "The whole session",
    "compaction": "One compaction: its check, the bridge from before to after, its price and what it inserted",
    "decision": "One decision: the check before one step as arithmetic",
}
_ANCHORED = re.compile(r"(?i)\s*step\s+([0-9]{1,9})\s*:\s*(.+)")


class RequestedShare(NamedTuple):
    """What a form asks for."""

    request: ShareRequest
    lifetime: timedelta
    password: str


def parse(
    given: Mapping[str, str], options: Mapping[str, Any], steps: int, count: int
) -> tuple[RequestedShare | None, dict[str, str]]:
    """The request of a form, and an error for each field that is wrong. `steps` are the calls of the session, `count`
    its compactions on the side that is shared."""
    errors: dict[str, str] = {}
    typed = plain(given)
    level = typed.get("level", "")
    if level not in LEVELS:
        errors["level"] = f"Choose one of: {', '.join(LEVELS)}."
    fields = common(typed, errors)
    remarks = tuple(_remarks(typed.get("remarks", ""), steps, errors))
    chosen = _chosen(typed.get("compaction", "").strip(), count, errors)
    part = _part(typed, chosen, steps, errors)
    if errors:
        return None, errors
    request = ShareRequest(
        options=ReportOptions(**options, chosen=chosen, level=level),
        part=part,
        title=fields.title,
        remarks=remarks,
        hide=fields.hide,
    )
    return RequestedShare(request, fields.lifetime, fields.password), errors


def _part(
    typed: Mapping[str, str], chosen: tuple[int, ...] | None, steps: int, errors: dict[str, str]
) -> ReportPart | None:
    """What of the session is shared; None for all of it."""
    scope = typed.get("scope", "")
    if scope not in SCOPES:
        errors["scope"] = "Choose the whole session, one compaction or one decision."
    elif scope == "compaction" and chosen:
        return ReportPart("compaction", chosen[0])
    elif scope == "compaction":
        errors.setdefault("compaction", "Say which compaction: its number.")
    elif scope == "decision":
        text = typed.get("step", "").strip()
        if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= steps:
            return ReportPart("decision", step_index(int(text)))
        errors["step"] = f"Choose a step from 1 to {steps:,}." if steps else "The session has no step."
    return None


def _remarks(text: str, steps: int, errors: dict[str, str]) -> Iterator[Remark]:
    """A remark a line; one that begins with "step 12:" belongs to that step."""
    for line in remark_lines(text, errors):
        anchored = _ANCHORED.fullmatch(line)
        if anchored and not 1 <= int(anchored[1]) <= steps:
            errors["remarks"] = f"There is no step {int(anchored[1]):,}: the session has {steps:,}."
        elif anchored:
            yield Remark(step_index(int(anchored[1])), anchored[2])
        else:
            yield Remark(-1, line)


def _chosen(text: str, count: int, errors: dict[str, str]) -> tuple[int, ...] | None:
    """The compaction that is shown in full, by its number from 1; None: the first ones."""
    if not text:
        return None
    if text.isascii() and text.isdigit() and 1 <= int(text[:9]) <= count:
        return (compaction_index(int(text)),)
    errors["compaction"] = f"Choose a compaction from 1 to {count:,}, or leave it empty." if count else "There is none."
    return None
