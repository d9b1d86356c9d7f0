"""What the session list shows: rows, column heads, totals, filters, and where agents keep their sessions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.core.paginator import Page

from guard_core.findings import NEAR_MISS_SHARE
from guard_core.recordings import LABELS, PLACES
from guard_core.shares import per_cent
from inspector.models import Project, Session, Tag
from inspector.pages.shared.kinds import KINDS, kind_name
from inspector.pages.shared.listing import HAS, SEVERITY, SORTS, Filled, Listing, choices
from inspector.pages.shared.numbers import DASH, NARROW, amount, counted, short, size, tokens
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.peaks import peak_source

NUMERIC = ("calls", "compactions")
# A click shows the largest first:
FIRST_DOWN = ("date", "added", "size", "calls", "turns", "peak", "compactions", "threshold")
NEAR, OVER = round(100 * NEAR_MISS_SHARE), 100  # per cent of the window

# Columns of the list, each with what else it sorts by: what is shown small in the same column.
COLUMNS = {
    "title": ("agent", "size"),
    "verdict": (),
    "model": (),
    "date": ("added",),
    "calls": ("turns",),
    "peak": (),
    "compactions": ("threshold",),
}
MARKS = {  # sign, name for screen readers
    Session.Severity.ERROR: ("✕", "Error"),
    Session.Severity.WARNING: ("!", "Warning"),
    Session.Severity.FINE: ("✓", "Fine"),
    Session.Severity.UNJUDGED: ("–", ""),
}
CHECKING = "Being checked with the window and the version in use …"
NO_CALLS = "No model call in this session."


def row(session: Filled) -> dict[str, Any]:
    """One line of the list."""
    format_names = (session.format.lower(), LABELS.get(session.format, "").lower())
    return {
        "id": str(session.pk),
        "title": in_order(session.title),
        "given_title": session.title,
        "url": session.get_absolute_url(),
        "format": LABELS.get(session.format, session.format),
        "agent": "" if session.agent.lower() in format_names else session.agent,
        "model": session.model or DASH,
        "started": session.started_at,
        "added": session.created,
        "size": size(session.recording.size),
        "calls": tokens(session.calls),
        "turns": counted(session.turns, "turn"),
        "compactions": session.compactions,
        "threshold": _threshold(session),
        "tags": [tag.name for tag in session.tags.all()],
        "verdict": _verdict(session),
        "fill": _fill(session),
    }


def _verdict(session: Session) -> dict[str, str]:
    """The verdict with its mark; what is outdated is not shown as one."""
    if not session.is_assessed:
        return {"words": CHECKING, "level": "unjudged", "sign": "…", "name": ""}
    severity = Session.Severity(session.severity)
    sign, name = MARKS[severity]
    words = session.verdict.replace(" %", f"{NARROW}%") or (NO_CALLS if not session.calls else "")
    return {"words": words, "level": severity.name.lower(), "sign": sign, "name": name}


def _threshold(session: Session) -> dict[str, str]:
    """Where the agent compacts: by its rule, or at most, as its recording shows; empty where neither is known."""
    if session.threshold <= 0 or not session.is_assessed:
        return {}
    if session.threshold_source == "rule":
        title = f"{session.threshold:,} tokens by the agent's own rule at the last call"
        return {"words": f"at {short(session.threshold)}", "title": title}
    title = f"inferred: it compacted at {session.threshold:,} tokens; its rule gives no threshold, or another one"
    return {"words": f"≤ {short(session.threshold)} inferred", "title": title}


def _fill(session: Filled) -> dict[str, Any]:
    """The largest request: how much of the window it fills, and whether it was counted or modelled. A larger one that
    is no overflow is not held against that window: its model has another, or it proves that this is not the window."""
    fill, filled = session.fill, session.filled_window
    source = peak_source(session)
    peak, window = f"{session.peak_tokens:,}", f"{filled or session.effective_window:,} tokens"
    is_share = filled > 0 and (fill <= OVER or session.overflows > 0 or not session.is_assessed)
    held = f"{peak} of {window}" if is_share else f"{peak} tokens, not held against the session's window of {window}"
    return {
        "known": session.peak_tokens > 0,
        "is_share": is_share,
        "percent": "<1" if 0 < fill < 0.5 else per_cent(session.peak_tokens / max(1, filled)),
        "width": f"{min(fill, 100):.1f}",
        "level": "over" if fill > OVER else "near" if fill >= NEAR else "fine",
        "tokens": short(session.peak_tokens),
        "exact": f"{held}, {source or 'recorded'}",
        "source": source,
    }


def heads(listing: Listing) -> list[dict[str, Any]]:
    """The column heads; each sorts, a second time the other way round."""
    return [
        {**_head(listing, name), "num": name in NUMERIC, "more": [_head(listing, each) for each in more]}
        for name, more in COLUMNS.items()
    ]


def _head(listing: Listing, name: str) -> dict[str, Any]:
    down, up = f"-{name}", name
    first, second = (down, up) if name in FIRST_DOWN else (up, down)
    return {
        "name": name,
        "title": SORTS[name][0],
        "url": listing.address(sort=second if listing.sort == first else first),
        "order": {up: "ascending", down: "descending"}.get(listing.sort, ""),
    }


def filters(project: Project, listing: Listing) -> dict[str, Any]:
    """The filter form: what may be chosen, and what is."""
    agents, models = choices(project, "agent"), choices(project, "model")
    kinds = [{**option, "label": kind_name(option["value"])} for option in _options(KINDS, listing.kind)]
    formats = [
        {**option, "label": LABELS.get(option["value"], option["value"])}
        for option in _options(choices(project, "format"), listing.format)
    ]
    return {
        "severity": [
            {"name": name, "label": label, "on": name in listing.severity} for name, (label, _) in SEVERITY.items()
        ],
        "has": [{"name": name, "label": label, "on": name in listing.has} for name, (label, _) in HAS.items()],
        "menus": [
            {"name": "kind", "label": "Finding", "any": "any", "options": kinds},
            {
                "name": "agent",
                "label": "Agent",
                "any": "any",
                "options": _options(agents, listing.agent),
            },
            {"name": "format", "label": "Format", "any": "any", "options": formats},
            {
                "name": "model",
                "label": "Model",
                "any": "any",
                "options": _options(models, listing.model),
            },
            {"name": "tag", "label": "Tag", "any": "any", "options": _options(tag_names(project), listing.tag)},
        ],
        "more": listing.more,
    }


def tag_names(project: Project) -> list[str]:
    """Every tag that a listed session of a project carries."""
    used = Tag.objects.of(project).filter(sessions__deleted=None)
    return list(used.values_list("name", flat=True).distinct()[:200])


def totals_line(sums: dict[str, int]) -> list[str]:
    """The sums over what was found, in words."""
    parts = [counted(sums["sessions"], "session"), counted(sums["calls"], "model call")]
    if sums["tokens"]:
        parts.append(f"{amount(sums['tokens'])} prompt tokens recorded")
    parts.append(counted(sums["compactions"], "compaction"))
    if sums["errors"]:
        parts.append(f"{sums['errors']:,} with errors")
    if sums["overflowing"]:
        parts.append(f"{sums['overflowing']:,} with overflow")
    return parts


def pages(listing: Listing, page: Page[Session]) -> dict[str, Any]:
    """Links to the pages before and after."""
    return {
        "number": page.number,
        "count": page.paginator.num_pages,
        "first": page.start_index(),
        "last": page.end_index(),
        "total": page.paginator.count,
        "earlier": listing.address(page=page.number - 1) if page.has_previous() else "",
        "later": listing.address(page=page.number + 1) if page.has_next() else "",
    }


def formats() -> list[dict[str, Any]]:
    """What is read, each with the place where its agent keeps it; agents with a known folder first, then by name."""
    listed = [{"label": LABELS[name], "place": PLACES.get(name, "")} for name in LABELS]
    rows = [{**item, "is_path": " " not in item["place"]} for item in listed]
    return sorted(rows, key=lambda row: (not row["place"].startswith(("~", ".")), row["label"].lower()))


def _options(values: Iterable[str], chosen: str) -> list[dict[str, Any]]:
    values = list(values)
    if chosen and chosen not in values:
        values.insert(0, chosen)
    return [{"value": value, "label": value, "on": value == chosen} for value in values]
