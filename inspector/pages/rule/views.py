"""Why the agent compacted where it did: by its own rule, with settings that may be typed in."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_POST

from guard_core.defaults import MAX_WINDOW
from guard_core.errors import GuardError
from guard_core.rules import Explanation, OwnChecks, agent_of, explain
from guard_core.rules.settings import WINDOW
from guard_core.rules.words import headline
from guard_core.windows.window import parse_window
from inspector.models import Session
from inspector.pages.rule import presenter as present
from inspector.pages.rule import stating
from inspector.pages.rule.flow import flow
from inspector.pages.session.frame import Frame, frame, number
from inspector.pages.shared import stated_windows as windows
from inspector.pages.shared.paging import Pager, pager
from inspector.pages.shared.project import project_of
from inspector.replays.choice import sentence
from inspector.storage import explanations, loading

ROWS = 20  # of one table: with three tables less than half of the elements that a page may have


@require_GET
def session_rule(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The rule with its numbers, what the recording proves of the threshold, and each compaction beside both."""
    page = frame(request, session_id)
    agent = agent_of(page.analysis.head)
    stated = explanations.settings_of(page.analysis.head, page.row.project_id)
    tried = present.typed(request.GET, present.PREFIX)
    asked, own_window = bool(tried or page.choice.window), _window(page.row)
    of_model = windows.is_of_model(page.row) and not page.row.window_override
    scope = f"all sessions of {page.row.model}" if of_model else "this session alone"
    window_words = f"{int(own_window[WINDOW]):,} tokens for {scope}" if own_window.get(WINDOW) else ""
    explanation, errors = _explained(page, stated, tried) if asked else (page.analysis.facts.explanation, {})
    pagers = {
        name: _pager(page, name, len(items), tried)
        for name, items in (
            ("compactions", explanation.compactions),
            ("kept", explanation.kept),
            ("missed", explanation.missed),
        )
    }
    context: dict[str, Any] = {
        **page.context("rule"),
        "headline": headline(explanation),
        "unknown": explanation.unknown,
        "rule": present.rule(explanation.rule),
        "form": present.form(agent, explanation, {**own_window, **stated, **tried}, errors, scope),
        "stated": present.stated(agent, stated, tried, request.GET, window_words),
        "action": reverse("session_rule_settings", args=[page.row.pk]),
        "flow": flow(page, OwnChecks(page.analysis.head, page.analysis.ledger, explanation)),
        "kept": present.kept(explanation, page, pagers["kept"].shown),
        "rows": present.compactions(explanation, page, pagers["compactions"].shown),
        "missed": present.missed(explanation, page, pagers["missed"].shown),
        "pagers": pagers,
        "intervals": present.intervals(explanation, page, agent, {**stated, **tried}),
        "agreement": present.agreement(explanation),
    }
    return render(request, "inspector/rule/index.html", context)


def _pager(page: Frame, name: str, count: int, tried: dict[str, str]) -> Pager:
    """The rows of a table that the address names, as `?<table>=` the number of the first."""
    tries = {f"{present.PREFIX}{setting}": value for setting, value in tried.items()}
    at = page.request.GET.get("at", "")[: present.LONGEST]

    def address(row: int) -> str:
        return f"{page.paths['rule']}{page.choice.query(at=at, **tries, **{name: row})}#{name}-title"

    return pager(count, number(page.request, name, 1, 1, max(1, count)) - 1, ROWS, address)


@require_POST
def session_rule_settings(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Remember typed settings for all sessions of the agent, try them on this page alone, or forget them.

    What the rule cannot read comes back in the address of the page, which says beside the field what is wrong.
    """
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    agent = agent_of(loading.load_head(row))
    if agent is None:
        return _to(row, {})
    values = present.typed(request.POST, present.PREFIX)
    known = {name: value for name, value in values.items() if present.is_allowed(agent, name)}
    do = request.POST.get("do", "save")
    if do == "try" or (do != "clear" and (stating.complaints(agent, known) or _no_window(known))):
        return _to(row, {f"{present.PREFIX}{name}": value for name, value in known.items()})
    window = known.pop(WINDOW, "")
    before = stating.state(row, agent, {} if do == "clear" else known)
    if do != "clear" and f"{present.PREFIX}{WINDOW}" in request.POST:
        before |= _state_window(row, window)
    return _to(row, {present.SAVED: "1", **{f"{present.BEFORE}{name}": value for name, value in before.items()}})


def _window(row: Session) -> dict[str, str]:
    """The window that a person stated for a session or its model, as a typed setting."""
    known = row.window_override or row.model_window
    return {WINDOW: str(known)} if known else {}


def _no_window(values: dict[str, str]) -> str:
    """Why what was typed for the window is none; empty where it is one, or where nothing was typed."""
    try:
        parse_window(values.get(WINDOW, str(MAX_WINDOW)))
    except GuardError as error:
        return sentence(error)
    return ""


def _state_window(row: Session, typed: str) -> dict[str, str]:
    """Let this be the window of a session, or of all of its model; the one before, where it was another."""
    tokens, before = parse_window(typed) if typed else None, _window(row).get(WINDOW, "")
    if before == ("" if tokens is None else str(tokens)):
        return {}
    of_model = windows.is_of_model(row) and not row.window_override
    (windows.set_for_model if of_model else windows.set_for_session)(row, tokens)
    return {WINDOW: before or present.NONE}


def _to(row: Session, query: dict[str, str]) -> HttpResponse:
    address = reverse("session_rule", args=[row.pk])
    return HttpResponseRedirect(f"{address}?{urlencode(query)}#set-title" if query else f"{address}#set-title")


def _explained(page: Frame, stated: dict[str, str], tried: dict[str, str]) -> tuple[Explanation, dict[str, str]]:
    """The explanation under the settings of the address, else those that are `stated`. Of each that is not allowed the
    stated one stays in use, and what is wrong is said by the name of its field."""
    analysis, agent = page.analysis, agent_of(page.analysis.head)
    window = explanations.window_of(analysis.window)
    known = {name: value for name, value in tried.items() if present.is_allowed(agent, name)}
    errors = dict.fromkeys(tried.keys() - known.keys(), "This rule has no such setting.")
    if wrong := _no_window(known):
        errors[WINDOW] = wrong
        del known[WINDOW]

    def explained(values: dict[str, str]) -> Explanation:
        return explain(analysis.head, analysis.ledger, window=window, typed=values)

    try:
        return explained({**stated, **known}), errors
    except GuardError:  # one of them is wrong, or they contradict each other: take those that can be taken, in order
        accepted = dict(stated)
        for name, value in known.items():
            try:
                explained({**accepted, name: value})
                accepted[name] = value
            except GuardError as error:
                errors[name] = present.with_label(sentence(error), name)
    return explained(accepted), errors
