"""The session list: what an address asks for, as a query over sessions, and as an address again."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict
from urllib.parse import urlencode

from django.db.models import Case, Count, ExpressionWrapper, F, FloatField, Q, QuerySet, Sum, When
from django.db.models.functions import Cast, Coalesce, NullIf
from django.http import QueryDict

from guard_core.agent_names import agent_name
from inspector.models import Project, Session
from inspector.pages.shared import parameters
from inspector.pages.shared.numbers import counted

if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

PAGE_SIZE = 40  # rows; a page of them stays under 2,000 elements
MEGABYTE = 1_000_000  # bytes

HAS = {
    "compaction": ("Compaction", Q(compactions__gt=0)),
    "overflow": ("Overflow", Q(overflows__gt=0)),
    "near-miss": ("Near miss", Q(near_misses__gt=0)),
    "loop": ("Loop", Q(loops__gt=0)),
    "fallback": ("Fallback summary", Q(fallbacks__gt=0)),
    "no-usage": ("No usage", Q(reported_calls=0)),
}
SEVERITY = {  # name in the address: (chip, value)
    "error": ("Errors", Session.Severity.ERROR),
    "warning": ("Warnings", Session.Severity.WARNING),
    "fine": ("Fine", Session.Severity.FINE),
}
SORTS = {  # name in the address: (column title, fields); a leading minus in the address turns the order round
    "title": ("Session", ("title",)),
    "verdict": ("Verdict", ("severity",)),
    "agent": ("Agent", ("agent", "format")),
    "model": ("Model", ("model",)),
    "date": ("Started", ("started",)),
    "size": ("Size", ("recording__size",)),
    "calls": ("Calls", ("calls",)),
    "turns": ("Turns", ("turns",)),
    "peak": ("Peak fill", ("fill",)),
    "compactions": ("Compactions", ("compactions",)),
    "threshold": ("Threshold", ("threshold",)),
    "added": ("Added", ("created",)),
}
DEFAULT_SORT = "verdict"  # the worst first
DAYS = ("since", "until")
NUMBERS = ("min_size", "max_size", "min_peak", "max_peak")
MORE = ("kind", "agent", "format", "model", "tag", *DAYS, *NUMBERS)  # folded away unless used


class Fill(TypedDict):
    """What `with_fill` adds to a session."""

    fill: float
    started: datetime


Filled: TypeAlias = "WithAnnotations[Session, Fill]"


@dataclass(frozen=True)
class Listing:
    """What is asked for. Sizes in MB, peaks in per cent of the window; empty and None ask for nothing."""

    q: str = ""
    agent: str = ""
    format: str = ""
    model: str = ""
    tag: str = ""
    kind: str = ""
    severity: tuple[str, ...] = ()
    has: tuple[str, ...] = ()
    since: date | None = None
    until: date | None = None
    min_size: float | None = None
    max_size: float | None = None
    min_peak: float | None = None
    max_peak: float | None = None
    sort: str = DEFAULT_SORT
    page: int = 1

    @classmethod
    def parse(cls, given: QueryDict) -> Listing:
        """Read an address. What makes no sense is left out; `parameters.unread` says so."""
        texts: dict[str, Any] = {
            name: parameters.text(given.get(name, "")) for name in ("q", "agent", "format", "model", "tag", "kind")
        }
        numbers: dict[str, Any] = {name: parameters.number(given.get(name, "")) for name in NUMBERS}
        page = parameters.number(given.get("page", ""))
        sort = given.get("sort", "")
        return cls(
            **texts,
            **numbers,
            severity=tuple(name for name in SEVERITY if name in given.getlist("severity")),
            has=tuple(name for name in HAS if name in given.getlist("has")),
            since=parameters.day(given.get("since", "")),
            until=parameters.day(given.get("until", "")),
            sort=sort if sort.removeprefix("-") in SORTS else DEFAULT_SORT,
            page=int(page) if page and 1 <= page < 1_000_000 else 1,
        )

    @property
    def filtered(self) -> bool:
        """Does it leave anything out."""
        return replace(self, sort=DEFAULT_SORT, page=1) != Listing()

    @property
    def more(self) -> int:
        """How many of the folded filters are in use."""
        return sum(getattr(self, name) not in ("", None) for name in MORE)

    def address(self, **changes: Any) -> str:
        """The query string, with changes; defaults are left out. Starts with "?"; "?" alone clears it."""
        wanted = replace(self, **{"page": 1, **changes})
        pairs = []
        for field in fields(wanted):
            value = getattr(wanted, field.name)
            if value != field.default and value is not None:
                pairs += [(field.name, item) for item in (value if isinstance(value, tuple) else (value,))]
        return "?" + urlencode([(name, f"{item:g}" if isinstance(item, float) else item) for name, item in pairs])

    def sessions(self, project: Project) -> QuerySet[Session]:
        """The sessions of a project asked for, in order; `fill` (per cent) and `started` come with each."""
        sessions = self._narrowed(with_fill(Session.objects.of(project).filter(deleted=None)))
        for name in self.has:
            sessions = sessions.filter(HAS[name][1])
        if self.severity:
            sessions = sessions.filter(severity__in=[SEVERITY[name][1] for name in self.severity])
        if self.kind:
            sessions = sessions.filter(kinds__contains=f" {self.kind} ")
        down = self.sort.startswith("-")
        keys = SORTS[self.sort.removeprefix("-")][1]
        return sessions.order_by(*(f"-{key}" if down else key for key in keys), "-created", "ordinal", "pk")

    def _narrowed(self, sessions: QuerySet[Session]) -> QuerySet[Session]:
        if self.q:
            names = ("title", "model", "agent", "format", "recording__name")
            for word in self.q.split()[:8]:
                matches = [Q(**{f"{name}__icontains": word}) for name in names]
                sessions = sessions.filter(matches[0] | matches[1] | matches[2] | matches[3] | matches[4])
        exact = {"agent": self.agent, "format": self.format, "model": self.model, "tags__name": self.tag}
        sessions = sessions.filter(**{name: value for name, value in exact.items() if value})
        limits = {
            "started__gte": parameters.midnight(self.since),
            "started__lt": parameters.midnight(self.until + timedelta(days=1)) if self.until else None,
            "recording__size__gte": None if self.min_size is None else int(self.min_size * MEGABYTE),
            "recording__size__lte": None if self.max_size is None else int(self.max_size * MEGABYTE),
            "fill__gte": self.min_peak,
            "fill__lte": self.max_peak,
        }
        return sessions.filter(**{name: value for name, value in limits.items() if value is not None})


def rows_of(project: Project, listed: QuerySet[Session]) -> list[Filled]:
    """The sessions of one page, with recordings and tags. Their order is found first: to sort all sessions with all
    their columns takes three times as long."""
    keys = list(listed.values_list("pk", flat=True))
    sessions = Session.objects.of(project).select_related("recording").prefetch_related("tags")
    rows = with_fill(sessions).in_bulk(keys)
    return [rows[key] for key in keys if key in rows]


def with_fill(sessions: QuerySet[Session]) -> QuerySet[Filled]:
    """With `fill`, the largest request in per cent of `Session.filled_window`, 0 without one, and `started`."""
    in_use = Coalesce("window_override", "model_window", "window")
    is_judged = Q(peak_window__isnull=False, assessed_window=in_use)
    window = NullIf(Case(When(is_judged, then=F("peak_window")), default=in_use), 0)
    share = ExpressionWrapper(F("peak_tokens") * 100.0 / Cast(window, FloatField()), output_field=FloatField())
    return sessions.annotate(fill=Coalesce(share, 0.0), started=Coalesce("started_at", "created"))


def totals(sessions: QuerySet[Session]) -> dict[str, int]:
    """Sums over all that was found, not over the page alone."""
    sums = sessions.order_by().aggregate(
        sessions=Count("pk"),
        calls=Sum("calls"),
        tokens=Sum("prompt_tokens_sum"),
        compactions=Sum("compactions"),
        errors=Count("pk", filter=Q(severity=SEVERITY["error"][1])),
        overflowing=Count("pk", filter=Q(overflows__gt=0)),
    )
    return {name: value or 0 for name, value in sums.items()}


def about(row: Session) -> str:
    """What distinguishes sessions with the same title, such as several runs of one task."""
    when = f"{'' if row.started_at else 'added '}{row.started_at or row.created:%d %b %Y %H:%M} UTC"
    words = (agent_name(row.agent, row.format), row.model, counted(row.calls, "call"), when)
    return ", ".join(filter(None, words))


def choices(project: Project, name: str) -> list[str]:
    """The values of a column that any session of a project has, for a menu."""
    values = Session.objects.of(project).filter(deleted=None).exclude(**{name: ""})
    return list(values.order_by(name).values_list(name, flat=True).distinct()[:200])
