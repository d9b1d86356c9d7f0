"""The sessions around one as links: where it was started, what its tool calls started, and other recordings of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from guard_core.recordings.formats.capture.format import FORMAT as CAPTURE
from guard_core.sessions import Session as CoreSession
from guard_core.sessions import SubAgent
from inspector.models import Session
from inspector.pages.session.family import SessionFamily
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.parts import in_order, visible

FEW = 6  # sub-agents that are named in a line; more are folded


def line(family: SessionFamily, head: CoreSession, source_id: str) -> dict[str, Any]:
    """The line below the tabs; empty where a session has no relations."""
    if not (family.parent_name or family.children or head.sub_agents or family.twins):
        return {}
    here = {child.source_id for child in family.children}
    missing = [agent for agent in head.sub_agents if agent.session[:200] not in here]
    parent = {}
    if family.parent is not None:
        start = f"{reverse('session_steps', args=[family.parent.pk])}?{urlencode({'started': source_id})}"
        parent = {"title": in_order(family.parent.title), "url": family.parent.get_absolute_url(), "start": start}
    return {
        "parent": parent,
        "parent_missing": "" if family.parent else visible(family.parent_name[:80]),
        "children": _links(family.children),
        "few": len(family.children) <= FEW,
        "count": counted(len(family.children), "sub-agent"),
        "missing": counted(len(missing), "sub-agent") if missing else "",
        "twins": _links(family.twins[:FEW]),
        "more_twins": f"and {len(family.twins) - FEW:,} more" if len(family.twins) > FEW else "",
        "is_captured": head.format == CAPTURE.name,
    }


def _links(sessions: Sequence[Session]) -> list[dict[str, str]]:
    return [{"title": in_order(one.title), "url": one.get_absolute_url()} for one in sessions]


def by_call(family: SessionFamily, agents: tuple[SubAgent, ...]) -> dict[str, dict[str, str]]:
    """What each tool call started, by its id: a link, or the name of a session that is not here."""
    here = {child.source_id: child for child in family.children}
    links = {}
    for agent in agents:
        child = here.get(agent.session[:200])
        name = visible(agent.session[:80])
        links[agent.call] = (
            {"url": child.get_absolute_url(), "title": in_order(child.title)} if child else {"missing": name}
        )
    return links
