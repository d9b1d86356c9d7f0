"""What the session list shows: rows, column heads, totals, filters, and where agents keep their sessions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page

from guard_core.findings import NEAR_MISS_SHARE
from guard_core.recordings import LABELS
from inspector.listing import HAS, SORTS, Listing, choices
from inspector.models import Session, Tag
from inspector.presenters.numbers import DASH, counted, short, size, tokens

NUMERIC = ("size", "calls", "turns", "compactions")
FIRST_DOWN = ("date", "added", "size", "calls", "turns", "peak", "compactions")  # a click shows the largest first
NEAR, OVER = round(100 * NEAR_MISS_SHARE), 100  # per cent of the window

# Where each agent leaves its sessions: what a person looks for first.
PLACES = {
    "claude-code": "~/.claude/projects/…/*.jsonl",
    "codex": "~/.codex/sessions/…/rollout-*.jsonl",
    "gemini-cli": "~/.gemini/tmp/…/chats/*.json",
    "opencode": "~/.local/share/opencode/opencode.db",
    "pi": "~/.pi/agent/sessions/…/*.jsonl",
    "copilot-cli": "~/.copilot/session-state/…/events.jsonl",
    "crush": ".crush/crush.db",
    "hermes": "~/.hermes/state.db",
    "aider": ".aider.chat.history.md",
    "adk": "sessions as JSON or SQLite",
    "inspect": "logs/*.eval, or .json",
    "openhands": "trajectory JSON",
    "swe-agent": "trajectories/…/*.traj",
    "mini-swe-agent": "*.traj.json",
    "atif": "trajectory.json",
    "otel": "OTLP JSON with GenAI or OpenInference spans",
    "langchain": "messages or runs as JSON",
    "openai-chat": "messages, or request and response logs",
    "openai-responses": "input and output items",
    "anthropic-messages": "messages, or request and response logs",
    "cline": "api_conversation_history.json",
    "compaction-inspector": "our own export",
}


@dataclass(frozen=True)
class Badge:
    text: str
    kind: str
    title: str


def row(session: Session) -> dict[str, Any]:
    """One line of the list."""
    fill = session.fill
    level = "over" if fill > OVER else "near" if fill >= NEAR else "fine"
    return {
        "id": str(session.pk),
        "title": session.title,
        "url": session.get_absolute_url(),
        "format": LABELS.get(session.format, session.format),
        "agent": "" if session.agent.lower() in _same(session.format) else session.agent,
        "model": session.model or DASH,
        "started": session.started_at,
        "added": session.created,
        "size": size(session.recording.size),
        "calls": tokens(session.calls),
        "turns": tokens(session.turns),
        "compactions": session.compactions,
        "tags": [tag.name for tag in session.tags.all()],
        "badges": badges(session),
        "fill": {
            "known": session.prompt_tokens_max > 0,
            "percent": "<1" if 0 < fill < 0.5 else f"{fill:,.0f}",
            "width": f"{min(fill, 100):.1f}",
            "level": level,
            "tokens": short(session.prompt_tokens_max),
            "exact": f"{session.prompt_tokens_max:,} of {session.effective_window:,} tokens",
        },
    }


def _same(format_: str) -> tuple[str, ...]:
    return format_.lower(), LABELS.get(format_, "").lower()


def badges(session: Session) -> list[Badge]:
    """What went wrong, in words."""
    found = [
        (session.overflows, "overflow", "overflow", "requests larger than the window"),
        (session.near_misses, "near miss", "warn", "requests that filled at least 90 % of the window"),
        (
            session.loops,
            "loop",
            "overflow",
            "runs of compactions without progress, or whose effect was gone at the next call",
        ),
        (session.fallbacks, "fallback summary", "warn", "mechanical summaries in place of the model's"),
    ]
    shown = [Badge(text, kind, f"{count:,} {title}") for count, text, kind, title in found if count]
    if session.calls and not session.reported_calls:
        shown.append(Badge("no usage", "outline", "The recording holds no prompt tokens counted by the provider."))
    return shown


def heads(listing: Listing) -> list[dict[str, Any]]:
    """The column heads; each sorts, a second time the other way round."""
    made = []
    for name, (title, _) in SORTS.items():
        if name == "agent":  # it stands under the title, and sorts from there
            continue
        down, up = f"-{name}", name
        first, second = (down, up) if name in FIRST_DOWN else (up, down)
        order = {up: "ascending", down: "descending"}.get(listing.sort, "")
        target = second if listing.sort == first else first
        made.append(
            {"name": name, "title": title, "url": listing.address(sort=target), "order": order, "num": name in NUMERIC}
        )
    return made


def filters(listing: Listing) -> dict[str, Any]:
    """The filter form: what may be chosen, and what is."""
    return {
        "has": [{"name": name, "label": label, "on": name in listing.has} for name, (label, _) in HAS.items()],
        "menus": [
            {"name": "agent", "label": "Agent", "any": "any", "options": _options(choices("agent"), listing.agent)},
            {"name": "format", "label": "Format", "any": "any", "options": _formats(listing.format)},
            {"name": "model", "label": "Model", "any": "any", "options": _options(choices("model"), listing.model)},
            {"name": "tag", "label": "Tag", "any": "any", "options": _options(tag_names(), listing.tag)},
        ],
        "more": listing.more,
    }


def tag_names() -> list[str]:
    """Every tag that a listed session carries."""
    return list(Tag.objects.filter(sessions__deleted=None).values_list("name", flat=True).distinct()[:200])


def totals_line(sums: dict[str, int]) -> list[str]:
    """The sums over what was found, in words."""
    parts = [counted(sums["sessions"], "session"), counted(sums["calls"], "model call")]
    if sums["tokens"]:
        parts.append(f"{short(sums['tokens'])} prompt tokens recorded")
    parts.append(counted(sums["compactions"], "compaction"))
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
    """What is read, each with the place where its agent keeps it; agents first, in the order of PLACES."""
    order = list(PLACES)
    names = sorted(LABELS, key=lambda name: order.index(name) if name in order else len(order))
    places = ((name, PLACES.get(name, "")) for name in names)
    return [{"label": LABELS[name], "place": place, "is_path": " " not in place} for name, place in places]


def _options(values: Iterable[str], chosen: str) -> list[dict[str, Any]]:
    values = list(values)
    if chosen and chosen not in values:
        values.insert(0, chosen)
    return [{"value": value, "label": value, "on": value == chosen} for value in values]


def _formats(chosen: str) -> list[dict[str, Any]]:
    return [
        {**option, "label": LABELS.get(option["value"], option["value"])}
        for option in _options(choices("format"), chosen)
    ]
