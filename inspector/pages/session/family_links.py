"""The sessions around one as links: where it was started, and what its tool calls started."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from guard_core.sessions import Session as CoreSession
from guard_core.sessions import SubAgent
from inspector.pages.session.family import Family
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.parts import visible

FEW = 6  # sub-agents that are named in a line; more are folded


def line(family: Family, head: CoreSession, source_id: str) -> dict[str, Any]:
    """The line below the tabs; empty where a session has no relations."""
    if not (family.parent_name or family.children or head.sub_agents):
        return {}
    here = {child.source_id for child in family.children}
    missing = [agent for agent in head.sub_agents if agent.session[:200] not in here]
    return {
        "parent": _parent(family, source_id),
        "parent_missing": "" if family.parent else visible(family.parent_name[:80]),
        "children": [{"title": child.title, "url": child.get_absolute_url()} for child in family.children],
        "few": len(family.children) <= FEW,
        "count": counted(len(family.children), "sub-agent"),
        "missing": counted(len(missing), "sub-agent") if missing else "",
    }


def _parent(family: Family, source_id: str) -> dict[str, str]:
    if family.parent is None:
        return {}
    steps = reverse("session_steps", args=[family.parent.pk])
    start = f"{steps}?{urlencode({'started': source_id})}"
    return {"title": family.parent.title, "url": family.parent.get_absolute_url(), "start": start}


def by_call(family: Family, agents: tuple[SubAgent, ...]) -> dict[str, dict[str, str]]:
    """What each tool call started, by its id: a link, or the name of a session that is not here."""
    here = {child.source_id: child for child in family.children}
    links = {}
    for agent in agents:
        child = here.get(agent.session[:200])
        name = visible(agent.session[:80])
        links[agent.call] = {"url": child.get_absolute_url(), "title": child.title} if child else {"missing": name}
    return links
