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

__version__ = "0.1.0"

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
from guard_core.findings import Finding, findings, verdict
from guard_core.ledger import Ledger
from guard_core.models import window_of
from guard_core.policies import POLICIES, Check, Decision, Policy, get_policy
from guard_core.recordings import FORMATS, Recording, read
from guard_core.replay import observe_recorded, replay
from guard_core.sessions import GuardState, ModelCall, RecordedCompaction, Session, Source, Sourced, ToolDefinition
from guard_core.simulator.flow import Simulation, Turn, play
from guard_core.simulator.running import run_scenario
from guard_core.simulator.scenarios import SCENARIOS, Scenario, get_scenario
from guard_core.summaries.base import Summarizer, Summary, SummaryRequest
from guard_core.summaries.sizes import get_summarizer
from guard_core.sweep import SweepResult, sweep
from guard_core.trace import CompactionRecord, Pass, Term, Trace
from guard_core.usage import AttributedUsage, RatioUsage, Usage, usage_for
from guard_core.views import Inserted, Rewritten, Span, Synthetic, View, materialise

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
    "Source",
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
    "View",
    "attribute",
    "findings",
    "get_policy",
    "get_scenario",
    "get_summarizer",
    "materialise",
    "observe_recorded",
    "play",
    "read",
    "replay",
    "run_scenario",
    "sweep",
    "usage_for",
    "verdict",
    "window_of",
]
