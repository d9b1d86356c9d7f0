"""Agents under other settings than their defaults: what a run proves without them, and what they explain once typed.

Each run bisects its agent's threshold, as the measured ones do: what does not fire is answered with more, what fires is
compacted, until the two are one token apart.
"""

import pytest

from guard_core.rules import explain
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import Inserted
from tests.builders import model, tool_result, user

OUTPUT = 7  # tokens of each answer
# What each agent counts beside the prompt, in tokens: the output, and its estimate of a result of 400 characters.
PROMPT, TOTAL, QUARTERS = 0, OUTPUT, OUTPUT + 100
NAMED, ENVELOPED = OUTPUT + 101, OUTPUT + 116
TURNS = ("pi", "gemini-cli")  # agents that compact between turns: each turn is one call


def bisected(format_, version, threshold, beside, *, strict=False, window=None):
    """A run whose agent compacts at a threshold; the last call follows the last compaction."""
    events, calls, compactions = [user("go")], [], []
    low, high, begins = 0, 2 * threshold, True
    name = "claude-opus-4-5" if format_ == "claude-code" else "stub-model"

    def ask(prompt):
        calls.append(ModelCall(len(events), len(events), prompt, None, None, OUTPUT, name))
        events.append(model("reading"))
        events.append(user("next") if format_ in TURNS else tool_result("x" * 400, id=f"{len(calls):04}"))

    while high - low > 1:
        start = (threshold // 4, threshold // 2) if begins else ()
        for count in (*start, (low + high) // 2):
            ask(count - beside)
            begins = count > threshold or (count == threshold and not strict)
            if begins:
                at, base = len(events), (Inserted(0),)
                compactions.append(RecordedCompaction(at, Evidence.DECLARED, "summary", base, (user("sum"),), "auto"))
                high = count
                break
            low = max(low, count)
    ask(1_000 if begins else low - beside)
    versions = ((0, version),) if version else ()
    return Session(tuple(events), tuple(calls), tuple(compactions), format=format_, window=window, versions=versions)


RECORDED = Sourced(258_400, Provenance.RECORDER)  # what Codex writes of a window of 272,000
RUNS = [
    ("claude-code", "2.0.76", 155_000, TOTAL, {}),
    ("claude-code", "2.1.0", 178_808, TOTAL, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}),
    ("claude-code", "2.1.2", 155_000, QUARTERS, {}),
    ("claude-code", "2.1.14", 155_000, QUARTERS, {}),
    ("claude-code", "2.1.17", 178_808, QUARTERS, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "8192"}),
    ("claude-code", "2.1.19", 84_000, QUARTERS, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"}),
    ("claude-code", "2.1.62", 167_000, QUARTERS, {}),
    ("claude-code", "2.1.140", 54_000, QUARTERS, {"CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "30"}),
    ("claude-code", "2.1.200", 67_000, QUARTERS, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "100000"}),
    ("claude-code", "2.1.330", 117_000, QUARTERS, {"autoCompactWindow": "150000"}),
    (
        "claude-code",
        "2.1.330",
        90_000,
        QUARTERS,
        {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "200000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "50"},
    ),
    (
        "claude-code",
        "2.1.330",
        52_000,
        QUARTERS,
        {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "80000", "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE": "65"},
    ),
    ("claude-code", "2.1.330", 967_000, QUARTERS, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "1000000"}),
    ("claude-code", "2.1.14", 955_000, QUARTERS, {}),
    ("claude-code", "2.1.14", 123_000, QUARTERS, {"CLAUDE_CODE_MAX_OUTPUT_TOKENS": "100000"}),
    ("claude-code", "2.1.100", 67_000, QUARTERS, {"CLAUDE_CODE_AUTO_COMPACT_WINDOW": "50000"}),
    ("codex", "0.60.1", 244_800, TOTAL, {}),
    ("codex", "0.94.0", 60_000, TOTAL, {"model_auto_compact_token_limit": "60000"}),
    ("codex", "0.156.0", 244_800, NAMED, {}),
    ("codex", "0.169.0", 244_800, NAMED, {}),
    ("codex", "0.169.0", 100_000, NAMED, {"model_auto_compact_token_limit": "100000"}),
    ("codex", "0.160.0", 123_456, NAMED, {"model_auto_compact_token_limit": "123456"}),
    ("opencode", "1.18.33", 111_616, TOTAL, {"limit.context": "128000", "limit.output": "16384"}),
    ("opencode", "1.1.65", 168_000, TOTAL, {"limit.context": "200000"}),
    ("opencode", "1.1.53", 168_000, TOTAL, {"limit.context": "200000"}),
    ("opencode", "1.18.33", 252_000, TOTAL, {"limit.input": "272000", "limit.context": "400000"}),
    ("opencode", "1.18.33", 262_000, TOTAL, {"limit.input": "272000", "compaction.reserved": "10000"}),
    ("opencode", "1.18.33", 57_344, TOTAL, {"limit.context": "65536", "limit.output": "8192"}),
    ("gemini-cli", "0.61.0", 209_716, PROMPT, {"model.compressionThreshold": "0.2"}),
    ("gemini-cli", "0.10.0", 734_004, PROMPT, {"chatCompression.contextPercentageThreshold": "0.7"}),
    ("kimi-cli", "wire 1.9", 131_072, QUARTERS, {"max_context_size": "262144", "compaction_trigger_ratio": "0.5"}),
    ("kimi-cli", "wire 1.9", 78_000, QUARTERS, {"max_context_size": "128000"}),
    ("mistral-vibe", "3.0.2", 209_715, TOTAL, {"max_context_length": "262144"}),
    ("mistral-vibe", "3.0.2", 50_000, TOTAL, {"auto_compact_threshold": "50000"}),
    ("mistral-vibe", "store 9", 209_715, TOTAL, {"max_context_length": "262144"}),
    ("mistral-vibe", "store 10", 202_144, TOTAL, {"max_context_length": "262144"}),
    ("qwen-code", "0.24.4", 167_000, ENVELOPED, {"contextWindowSize": "200000"}),
    ("qwen-code", "0.24.4", 98_072, ENVELOPED, {"contextWindowSize": "131072"}),
    ("qwen-code", "0.24.4", 500_000, ENVELOPED, {"context.autoCompactThreshold": "0.5", "window": "1000000"}),
    ("pi", "0.74.2", 168_000, TOTAL, {"reserveTokens": "32000", "contextWindow": "200000"}),
    ("pi", "0.73.1", 160_000, TOTAL, {"compaction.reserveTokens": "40000", "contextWindow": "200000"}),
    ("hermes", "0.19.0", 96_000, PROMPT, {"model.context_length": "128000"}),
    ("hermes", "0.19.0", 102_400, PROMPT, {"model.context_length": "128000", "compression.threshold": "0.8"}),
    ("crush", "", 160_000, TOTAL, {"context_window": "200000"}),
    ("cline", "", 98_000, TOTAL, {"contextWindow": "128000"}),
    ("langchain", "", 4_000, TOTAL, {"trigger_tokens": "4000"}),
    ("inspect", "", 20_000, TOTAL, {"threshold": "20000"}),
]


@pytest.mark.parametrize(("format_", "version", "threshold", "beside", "typed"), RUNS)
def test_a_run_proves_its_threshold_and_its_settings_explain_it(format_, version, threshold, beside, typed):
    window = RECORDED if format_ == "codex" else None
    strict = format_ in ("pi", "inspect") or version == "1.1.53"
    session = bisected(format_, version, threshold, beside, strict=strict, window=window)
    (interval,) = explain(session).inference
    assert (interval.above, interval.at_most) == (threshold - 1 + strict, threshold + strict)
    assert threshold in {item.threshold for item in interval.hypotheses}
    stated = explain(session, typed=typed)
    assert (stated.rule.threshold, stated.agrees, stated.missed) == (threshold, stated.auto, ())
    assert stated.auto == len(session.compactions) > 0
