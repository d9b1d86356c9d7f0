"""guard_core: why an LLM agent's context was compacted, what was lost, and what another setting would have done.

recording = read("session.jsonl")                       # a file → sessions and facts
session = recording.sessions[0]                         # an immutable log of events and model calls
ledger = Ledger.of(session)                             # what everything costs, in columns
usage = usage_for(ledger, None)                         # what the provider counts, recorded or modelled
policy = get_policy("contextguard", profile="current", cap=3)
trace = replay(ledger, policy, window=200_000, usage=usage)
policy.explain(trace, step=12)                          # the decision of a step as arithmetic
sweep(ledger, {"buffer": [10_000, 20_000]}, window=200_000, usage=usage)
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from guard_core.version import __version__

if TYPE_CHECKING:
    from guard_core.attribution import Attribution, attribute
    from guard_core.errors import (
        DamagedRecording,
        GuardError,
        LimitExceeded,
        RecordingError,
        SettingError,
        SummaryFailed,
        TokenizerUnavailable,
        UnknownFormat,
        UnknownName,
    )
    from guard_core.events import (
        Event,
        MediaPart,
        OtherPart,
        ReasoningPart,
        Role,
        TextPart,
        ToolCallPart,
        ToolResultPart,
    )
    from guard_core.findings import (
        Facts,
        Finding,
        Verdict,
        recorded_findings,
        recorded_verdict,
        replayed_findings,
        replayed_verdict,
    )
    from guard_core.ledger import Ledger
    from guard_core.models import window_of
    from guard_core.policies import POLICIES, Check, Decision, Policy, get_policy
    from guard_core.recordings import FORMATS, Recording, read
    from guard_core.replay import observe_recorded, replay
    from guard_core.requests import materialise
    from guard_core.sessions import (
        GuardState,
        ModelCall,
        Provenance,
        RecordedCompaction,
        Session,
        Sourced,
        ToolDefinition,
    )
    from guard_core.simulator.flow import Simulation, Turn, play
    from guard_core.simulator.running import run_scenario
    from guard_core.simulator.scenarios import SCENARIOS, Scenario, get_scenario
    from guard_core.summaries.base import Summarizer, Summary, SummaryRequest
    from guard_core.summaries.sizes import get_summarizer
    from guard_core.sweep import SweepResult, sweep
    from guard_core.trace import CompactionRecord, Pass, Term, Trace
    from guard_core.usage import AttributedUsage, RatioUsage, Usage, usage_for
    from guard_core.views import Inserted, Rewritten, Span, Synthetic, View

__all__ = [
    "FORMATS",
    "POLICIES",
    "SCENARIOS",
    "AttributedUsage",
    "Attribution",
    "Check",
    "CompactionRecord",
    "DamagedRecording",
    "Decision",
    "Event",
    "Facts",
    "Finding",
    "GuardError",
    "GuardState",
    "Inserted",
    "Ledger",
    "LimitExceeded",
    "MediaPart",
    "ModelCall",
    "OtherPart",
    "Pass",
    "Policy",
    "Provenance",
    "RatioUsage",
    "ReasoningPart",
    "RecordedCompaction",
    "Recording",
    "RecordingError",
    "Rewritten",
    "Role",
    "Scenario",
    "Session",
    "SettingError",
    "Simulation",
    "Sourced",
    "Span",
    "Summarizer",
    "Summary",
    "SummaryFailed",
    "SummaryRequest",
    "SweepResult",
    "Synthetic",
    "Term",
    "TextPart",
    "TokenizerUnavailable",
    "ToolCallPart",
    "ToolDefinition",
    "ToolResultPart",
    "Trace",
    "Turn",
    "UnknownFormat",
    "UnknownName",
    "Usage",
    "Verdict",
    "View",
    "__version__",
    "attribute",
    "get_policy",
    "get_scenario",
    "get_summarizer",
    "materialise",
    "observe_recorded",
    "play",
    "read",
    "recorded_findings",
    "recorded_verdict",
    "replay",
    "replayed_findings",
    "replayed_verdict",
    "run_scenario",
    "sweep",
    "usage_for",
    "window_of",
]

# Where each name lives. It is imported when it is asked for: who reads a file does not wait for policies and arrays.
_HOMES = {
    name: module
    for module, names in {
        "attribution": "Attribution attribute",
        "errors": "DamagedRecording GuardError LimitExceeded RecordingError SettingError SummaryFailed "
        "TokenizerUnavailable UnknownFormat UnknownName",
        "events": "Event MediaPart OtherPart ReasoningPart Role TextPart ToolCallPart ToolResultPart",
        "findings": "Facts Finding Verdict recorded_findings recorded_verdict replayed_findings replayed_verdict",
        "ledger": "Ledger",
        "models": "window_of",
        "policies": "POLICIES Check Decision Policy get_policy",
        "recordings": "FORMATS Recording read",
        "replay": "observe_recorded replay",
        "sessions": "GuardState ModelCall Provenance RecordedCompaction Session Sourced ToolDefinition",
        "simulator.flow": "Simulation Turn play",
        "simulator.running": "run_scenario",
        "simulator.scenarios": "SCENARIOS Scenario get_scenario",
        "summaries.base": "Summarizer Summary SummaryRequest",
        "summaries.sizes": "get_summarizer",
        "sweep": "SweepResult sweep",
        "trace": "CompactionRecord Pass Term Trace",
        "usage": "AttributedUsage RatioUsage Usage usage_for",
        "requests": "materialise",
        "views": "Inserted Rewritten Span Synthetic View",
    }.items()
    for name in names.split()
}


class _Package(ModuleType):
    """The package: a submodule does not hide the function of its name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in _HOMES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        found = getattr(import_module(f"{self.__name__}.{_HOMES[name]}"), name)
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_HOMES})


sys.modules[__name__].__class__ = _Package
