"""Recordings that agents with unusual settings would write, from the arithmetic that was measured of them: what the
recording proves of the threshold contains the true one, and with the settings typed in every compaction agrees."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import NamedTuple

import pytest

from guard_core.events import Event
from guard_core.policies.codex import USUAL_ID
from guard_core.rules import Agreement, explain
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Inserted
from tests.builders import OPUS, model, tool_result, user

Estimate = Callable[[int], int]  # tokens of a waiting tool result by its characters, which are ASCII


class Rules(NamedTuple):
    """An agent: its count is that of the last answer, with the output or not, and an estimate of what waits.

    `recorded`: it writes the count down. `at_turn_end`: it looks between turns alone. `in_file`: its file states the
    share of the window that can be used.
    """

    format: str
    version: str
    estimate: Estimate = lambda _: 0
    output: bool = True
    relation: str = ">="
    recorded: bool = False
    at_turn_end: bool = False
    usable: float = 1.0


CLAUDE_CODE = Rules("claude-code", "2.1.100", lambda chars: floor(chars / 4 + 0.5), recorded=True)
AGENTS = {
    "claude-code": CLAUDE_CODE,
    "claude-code before 2.1.21": CLAUDE_CODE._replace(version="2.1.14"),
    "claude-code with a window set": CLAUDE_CODE._replace(version="2.1.330"),
    "codex": Rules("codex", "0.169.0", lambda chars: ceil((chars + USUAL_ID) / 4), usable=0.95),
    "pi": Rules("pi", "", relation=">", recorded=True, at_turn_end=True),
    "opencode": Rules("opencode", "1.18.33"),
    "gemini-cli": Rules("gemini-cli", "0.61.0", output=False),
    "qwen-code": Rules("qwen-code", "0.24.4", lambda chars: ceil((chars + 64) / 4), recorded=True),
    "kimi-cli": Rules("kimi-cli", "wire 1.10", lambda chars: chars // 4),
    "mistral-vibe": Rules("mistral-vibe", "3.0.2"),
}
# Per agent: window in tokens, what was set, and the threshold that was measured or follows from what was measured.
VARIANTS: Mapping[str, tuple[tuple[int, dict[str, str], int], ...]] = {
    "claude-code": (
        (200_000, {}, 167_000),
        (1_000_000, {}, 967_000),
        (200_000, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}, 178_808),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, 90_000),
        (200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}, 67_000),
    ),
    "claude-code before 2.1.21": (
        (200_000, {}, 155_000),
        (1_000_000, {}, 955_000),
        (200_000, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}, 178_808),
        (200_000, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, 84_000),
        (200_000, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "64000"}, 123_000),
    ),
    "claude-code with a window set": (
        (200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000"}, 167_000),
        (200_000, {"autoCompactWindow": "150000"}, 117_000),
        (1_000_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000000"}, 967_000),
        (200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000", "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}, 178_808),
        (200_000, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}, 90_000),
    ),
    "codex": (
        (272_000, {}, 244_800),
        (128_000, {}, 115_200),
        (272_000, {"model_auto_compact_token_limit": "100000"}, 100_000),
        (272_000, {"model_auto_compact_token_limit": "300000"}, 244_800),
        (400_000, {"model_auto_compact_token_limit": "123456"}, 123_456),
    ),
    "pi": (
        (200_000, {}, 183_616),
        (128_000, {}, 111_616),
        (200_000, {"reserve_tokens": "40000"}, 160_000),
        (1_000_000, {}, 983_616),
        (262_144, {"reserve_tokens": "12345"}, 249_799),
    ),
    "opencode": (
        (200_000, {}, 168_000),
        (128_000, {"limit.output": "16384"}, 111_616),
        (400_000, {"limit.input": "272000"}, 252_000),
        (262_144, {}, 230_144),
        (400_000, {"limit.input": "272000", "compaction.reserved": "10000"}, 262_000),
    ),
    "gemini-cli": (
        (1_048_576, {}, 524_288),
        (1_048_576, {"compression_threshold": "0.2"}, 209_716),
        (1_048_576, {"compression_threshold": "0.7"}, 734_004),
        (1_048_576, {"compression_threshold": "10%"}, 104_858),
        (1_048_576, {"compression_threshold": "0.33"}, 346_031),
    ),
    "qwen-code": (
        (1_000_000, {}, 850_000),
        (200_000, {}, 167_000),
        (131_072, {}, 98_072),
        (1_000_000, {"context.autoCompactThreshold": "0.5"}, 500_000),
        (200_000, {"context.autoCompactThreshold": "0.95"}, 167_000),
    ),
    "kimi-cli": (
        (262_144, {}, 212_144),
        (128_000, {}, 78_000),
        (262_144, {"reserved_context_size": "10000"}, 222_823),
        (262_144, {"compaction_trigger_ratio": "0.6"}, 157_287),
        (1_048_576, {}, 891_290),
    ),
    "mistral-vibe": (
        (262_144, {}, 200_000),
        (262_144, {"max_context_length": "262144"}, 209_715),
        (262_144, {"auto_compact_threshold": "100000"}, 100_000),
        (262_144, {"auto_compact_threshold": "300000", "max_context_length": "262144"}, 209_715),
        (131_072, {"max_context_length": "131072"}, 104_857),
    ),
}
NOT_ROUND = (123_456, 249_799)  # no list of likely settings has these
CASES = [(agent, *variant) for agent, variants in VARIANTS.items() for variant in variants]


class Written:
    """A recording that is written as the agent works."""

    def __init__(self, rules: Rules, window: int, threshold: int, seed: int) -> None:
        self.rules, self.window, self.threshold, self.random = rules, window, threshold, random.Random(seed)
        self.events: list[Event] = []
        self.calls: list[ModelCall] = []
        self.compactions: list[RecordedCompaction] = []
        self.most = max(2_000, min(threshold // 15, (window - threshold) // 8))  # tokens by which a request grows
        self.prompt, self.output, self.waiting = self.low, 0, 0  # tokens
        self.known = False  # is a count of the provider known since the last compaction?

    @property
    def low(self) -> int:
        """The tokens of the first request, and of one after a compaction."""
        return max(self.threshold // 4, self.threshold - 10 * self.most)

    def turn(self, calls: int, *, manual: bool = False, name: str = OPUS) -> None:
        self.check(between=True)
        if manual:
            self.compact("manual", self.count)
        self.events.append(user("go on"))
        for number in range(1, calls + 1):
            self.check(between=False)
            self.call(name, ends=self.rules.at_turn_end and number == calls)

    def check(self, *, between: bool) -> None:
        strict = self.rules.relation == ">"
        fires = self.count > self.threshold if strict else self.count >= self.threshold
        if self.known and fires and (between or not self.rules.at_turn_end):
            self.compact("auto", self.count)

    @property
    def count(self) -> int:
        return self.prompt + self.rules.output * self.output + self.waiting

    def compact(self, trigger: str, count: int) -> None:
        at = len(self.events)
        summary = (user("the summary"),)
        recorded = count if self.rules.recorded and self.known else None
        self.compactions.append(
            RecordedCompaction(
                at, Evidence.DECLARED, "summary", (Inserted(0),), summary, trigger, tokens_before=recorded
            )
        )
        self.prompt, self.output, self.waiting, self.known = self.low, 0, 0, False

    def call(self, name: str, *, ends: bool) -> None:
        """`ends`: the answer is the last one of a turn, behind which nothing waits."""
        self.prompt += self.output + self.waiting + self.random.randrange(self.most // 4, self.most - 1_000)
        self.output, chars = self.random.randrange(5, 900), self.random.randrange(0, 2_000)
        at = len(self.events)
        self.calls.append(ModelCall(at, at, self.prompt, None, None, self.output, name))
        self.events += [model("done")] if ends else [model("reading"), tool_result("x" * chars, id=str(at))]
        self.waiting, self.known = 0 if ends else self.rules.estimate(chars), True

    def session(self) -> Session:
        size = round(self.window * self.rules.usable)
        return Session(
            tuple(self.events),
            tuple(self.calls),
            tuple(self.compactions),
            format=self.rules.format,
            model=OPUS,
            window=Sourced(size, Provenance.RECORDER),
            versions=((0, self.rules.version),) if self.rules.version else (),
        )


def written(agent: str, window: int, threshold: int, seed: int, *, manual: bool) -> Session:
    """14 turns; before one a person asks for a compaction where `manual` says so."""
    recording = Written(AGENTS[agent], window, threshold, seed)
    for number in range(14):
        recording.turn(6, manual=manual and number == 5)
    return recording.session()


@pytest.mark.parametrize(("agent", "window", "settings", "threshold"), CASES)
@pytest.mark.parametrize(
    "manual", [pytest.param(False, id=""), pytest.param(True, id="one by hand", marks=pytest.mark.long)]
)
def test_the_bounds_hold_the_true_threshold_and_its_settings_explain_it(agent, window, settings, threshold, manual):
    for seed in range(3):
        session = written(agent, window, threshold, seed, manual=manual)
        assert len(session.compactions) > 3
        unknown = explain(session).inference[0]
        assert unknown.contains(threshold), unknown.sentence
        listed = {item.threshold for item in unknown.hypotheses}
        assert threshold in listed or unknown.more or threshold in NOT_ROUND
        known = explain(session, typed=settings)
        assert known.rule.threshold == threshold
        automatic = [item for item in known.compactions if item.trigger != "manual"]
        assert {item.verdict for item in automatic} == {Agreement.AGREES}, [item.reason for item in automatic]
        assert known.missed == ()


@pytest.mark.parametrize("agent", sorted(VARIANTS))
def test_another_model_in_between_has_its_own_bounds(agent):
    """Its threshold is another one, and what it did says nothing of the first model's."""
    window, settings, threshold = VARIANTS[agent][0]
    recording = Written(AGENTS[agent], window, threshold, 7)
    for number in range(18):
        is_other = 6 <= number < 12
        recording.threshold = int(threshold * 0.6) if is_other else threshold
        if number in (6, 12):  # a smaller context, so that the change itself compacts nothing
            recording.compact("manual", recording.count)
        recording.turn(6, name="some-other-model" if is_other else OPUS)
    found = explain(recording.session(), typed=settings)
    own = next(item for item in found.inference if item.model == OPUS)
    other = next(item for item in found.inference if item.model == "some-other-model")
    assert own.contains(threshold), own.sentence
    assert other.contains(int(threshold * 0.6)), other.sentence
    assert not own.contains(int(threshold * 0.6))
