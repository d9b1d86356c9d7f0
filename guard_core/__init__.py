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

import re
import sys
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

from guard_core.version import __version__ as __version__

# The public names, each with its module. A type checker reads these imports; at run time a name is imported when it is
# first used, so that reading a file does not wait for policies and arrays.
if TYPE_CHECKING:
    from guard_core.errors import DamagedRecording as DamagedRecording
    from guard_core.errors import GuardError as GuardError
    from guard_core.errors import LimitExceeded as LimitExceeded
    from guard_core.errors import RecordingError as RecordingError
    from guard_core.errors import SettingError as SettingError
    from guard_core.errors import SummaryFailed as SummaryFailed
    from guard_core.errors import TokenizerUnavailable as TokenizerUnavailable
    from guard_core.errors import UnknownFormat as UnknownFormat
    from guard_core.errors import UnknownName as UnknownName
    from guard_core.estimation.attribution import Attribution as Attribution
    from guard_core.estimation.attribution import attribute as attribute
    from guard_core.estimation.usage import AttributedUsage as AttributedUsage
    from guard_core.estimation.usage import RatioUsage as RatioUsage
    from guard_core.estimation.usage import Usage as Usage
    from guard_core.estimation.usage import usage_for as usage_for
    from guard_core.events import Event as Event
    from guard_core.events import MediaPart as MediaPart
    from guard_core.events import OtherPart as OtherPart
    from guard_core.events import ReasoningPart as ReasoningPart
    from guard_core.events import Role as Role
    from guard_core.events import TextPart as TextPart
    from guard_core.events import ToolCallPart as ToolCallPart
    from guard_core.events import ToolResultPart as ToolResultPart
    from guard_core.findings import Facts as Facts
    from guard_core.findings import Finding as Finding
    from guard_core.findings import Verdict as Verdict
    from guard_core.findings import recorded_findings as recorded_findings
    from guard_core.findings import recorded_verdict as recorded_verdict
    from guard_core.findings import replayed_findings as replayed_findings
    from guard_core.findings import replayed_verdict as replayed_verdict
    from guard_core.guarding.guard import Guard as Guard
    from guard_core.guarding.recorder import Recorder as Recorder
    from guard_core.guarding.summarisers import AskedModel as AskedModel
    from guard_core.guarding.summarisers import ChatEndpoint as ChatEndpoint
    from guard_core.guarding.summarisers import Prompt as Prompt
    from guard_core.ledger import Ledger as Ledger
    from guard_core.policies import POLICIES as POLICIES
    from guard_core.policies import Check as Check
    from guard_core.policies import Decision as Decision
    from guard_core.policies import Policy as Policy
    from guard_core.policies import get_policy as get_policy
    from guard_core.recordings import FORMATS as FORMATS
    from guard_core.recordings import Recording as Recording
    from guard_core.recordings import read as read
    from guard_core.replay import observe_recorded as observe_recorded
    from guard_core.replay import replay as replay
    from guard_core.requests import materialise as materialise
    from guard_core.sessions import GuardState as GuardState
    from guard_core.sessions import ModelCall as ModelCall
    from guard_core.sessions import Provenance as Provenance
    from guard_core.sessions import RecordedCompaction as RecordedCompaction
    from guard_core.sessions import Session as Session
    from guard_core.sessions import Sourced as Sourced
    from guard_core.sessions import ToolDefinition as ToolDefinition
    from guard_core.simulator.flow import Simulation as Simulation
    from guard_core.simulator.flow import Turn as Turn
    from guard_core.simulator.flow import play as play
    from guard_core.simulator.running import run_scenario as run_scenario
    from guard_core.simulator.scenario import Scenario as Scenario
    from guard_core.simulator.scenarios import SCENARIOS as SCENARIOS
    from guard_core.simulator.scenarios import get_scenario as get_scenario
    from guard_core.summaries.base import Summarizer as Summarizer
    from guard_core.summaries.base import Summary as Summary
    from guard_core.summaries.base import SummaryRequest as SummaryRequest
    from guard_core.summaries.sizes import get_summarizer as get_summarizer
    from guard_core.sweep import SweepResult as SweepResult
    from guard_core.sweep import sweep as sweep
    from guard_core.trace import CompactionRecord as CompactionRecord
    from guard_core.trace import Pass as Pass
    from guard_core.trace import Term as Term
    from guard_core.trace import Trace as Trace
    from guard_core.views import Inserted as Inserted
    from guard_core.views import Rewritten as Rewritten
    from guard_core.views import Span as Span
    from guard_core.views import Synthetic as Synthetic
    from guard_core.views import View as View
    from guard_core.windows.models import window_of as window_of


@cache
def _modules() -> dict[str, str]:
    """The module of each public name, from the imports above as they are written."""
    loader = globals()["__loader__"]
    source = loader.get_source(__name__) or ""
    listed = re.findall(r"^    from (\S+) import (\S+) as \2$", source, re.MULTILINE)
    if not listed:
        raise ImportError("guard_core finds its public names in its source, which is not installed", name=__name__)
    return {name: module for module, name in listed}


class _Package(ModuleType):
    """The package: imports a public name when it is first used, and keeps a submodule from hiding the function of its
    name."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType) or name not in _modules():
            super().__setattr__(name, value)

    def __getattr__(self, name: str) -> Any:
        if name == "__all__":
            return sorted(_modules())
        if name not in _modules():
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(import_module(_modules()[name]), name)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_modules()})


sys.modules[__name__].__class__ = _Package
