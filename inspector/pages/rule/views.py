"""Why the agent compacted where it did: by its own rule, with settings that may be typed in."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from guard_core.errors import GuardError
from guard_core.rules import Explanation, agent_of, explain
from guard_core.rules.words import headline
from inspector.pages.rule import presenter as present
from inspector.pages.session.frame import Frame, frame
from inspector.replays.choice import sentence
from inspector.storage import explanations

LONGEST = 60  # characters of a typed value that are read


@require_GET
def session_rule(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The rule with its numbers, what the recording proves of the threshold, and each compaction beside both."""
    page = frame(request, session_id)
    typed = present.typed(request.GET)
    asked = bool(typed or page.choice.window)
    explanation, errors = _explained(page, typed) if asked else (explanations.load(page.row), {})
    context: dict[str, Any] = {
        **page.context("rule"),
        "headline": headline(explanation),
        "unknown": explanation.unknown,
        "rule": present.rule(explanation.rule),
        "form": present.form(agent_of(page.analysis.head), explanation.rule, typed, errors),
        "action": page.paths["rule"],
        "rows": present.compactions(explanation, page),
        "missed": present.missed(explanation, page),
        "intervals": present.intervals(explanation, page),
        "agreement": present.agreement(explanation),
    }
    return render(request, "inspector/rule/index.html", context)


def _explained(page: Frame, typed: dict[str, str]) -> tuple[Explanation, dict[str, str]]:
    """The explanation under the typed settings; each that is not allowed is left out and named."""
    analysis, agent = page.analysis, agent_of(page.analysis.head)
    window = explanations.window_of(analysis.window)
    known = {name: value[:LONGEST] for name, value in typed.items() if agent is not None and name in agent.names}
    errors = dict.fromkeys(typed.keys() - known.keys(), "This rule has no such setting.")

    def explained(values: dict[str, str]) -> Explanation:
        return explain(analysis.head, analysis.ledger, window=window, typed=values)

    try:
        return explained(known), errors
    except GuardError:  # one of them is wrong, or they contradict each other: take those that can be taken, in order
        accepted: dict[str, str] = {}
        for name, value in known.items():
            try:
                explained({**accepted, name: value})
                accepted[name] = value
            except GuardError as error:
                errors[name] = sentence(error)
    return explained(accepted), errors
