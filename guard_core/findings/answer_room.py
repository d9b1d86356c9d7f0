"""How much of a window an answer needs: most models' windows hold a request and its answer together."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from guard_core.findings.claims import RULE_DEFAULTS
from guard_core.ledger import Ints
from guard_core.rules import Explanation
from guard_core.rules.registry import agent_of
from guard_core.sessions import ANSWER_LIMIT, Provenance, Session, Sourced
from guard_core.windows.models import ModelAnswers, holds_answers

LONGEST, REQUESTS, SETTING, DEFAULT = "longest", "requests", "setting", "default"  # where the number of tokens is from


class AnswerRoom(NamedTuple):
    """The `tokens` that an answer may need at `steps` (0 at those whose model's window holds requests alone), by the
    longest recorded answer, or by what the requests or the agent allow one, where that is more; `agent` is who does."""

    tokens: int
    steps: Ints
    source: str
    agent: str

    @property
    def words(self) -> str:
        """The room in words, with where it is from."""
        whose = {
            LONGEST: "the longest recorded",
            REQUESTS: "the most that a request allows",
            SETTING: f"the most that {self.agent} allows",
            DEFAULT: f"{self.agent}'s default",
        }
        return f"room for an answer of {self.tokens:,} tokens, {whose[self.source]}"

    @property
    def assumptions(self) -> tuple[str, ...]:
        """The codes of what it rests on."""
        return (RULE_DEFAULTS,) if self.source == DEFAULT else ()


def answer_room(
    session: Session,
    answers: Mapping[str, ModelAnswers],
    explanation: Explanation,
    typed: Mapping[str, str],
    window: Sourced,
    windows: Ints,
) -> AnswerRoom | None:
    """The room for an answer; None where neither an answer's tokens nor a limit of them is known, or no window of the
    session holds answers. `typed`: settings of the agent's rule; `windows`: of every recorded call, in tokens."""
    longest = max((item.longest for item in answers.values()), default=0)
    tokens, source, label = longest, LONGEST, ""
    agent, rule = agent_of(session, typed), explanation.rule
    if agent is not None and agent.answers and rule is not None:
        allowed = next((item for item in rule.settings if item.name == agent.answers and item.value), None)
        if allowed is not None and (allowed.value or 0) > longest:
            is_default = allowed.source is Provenance.ASSUMED
            tokens, source, label = int(allowed.value or 0), DEFAULT if is_default else SETTING, rule.agent
    elif (stated := _stated(session, windows)) > longest:
        tokens, source = stated, REQUESTS
    by_model = {name: holds_answers(name or session.model, window, session.agent_format) for name in answers}
    if not tokens or not any(by_model.values()):
        return None
    holds = [True] if all(by_model.values()) else [by_model[call.model] for call in session.calls]
    steps = np.broadcast_to(tokens * np.array(holds, dtype=np.int64), len(session.calls))
    return AnswerRoom(tokens, steps, source, label)


def _stated(session: Session, windows: Ints) -> int:
    """The largest limit of an answer in the requests, in tokens; 0 where none states one, or where a request was
    answered that with it exceeds the window: that provider does not ask for so much room."""
    limit = next((int(item.value) for item in session.settings if item.name == ANSWER_LIMIT), 0)
    if not limit:
        return 0
    answered = [call.prompt_tokens or 0 if call.response is not None else 0 for call in session.calls]
    exceeds = (windows > 0) & (np.array(answered, dtype=np.int64) + limit > windows)
    return 0 if exceeds.any() else limit
