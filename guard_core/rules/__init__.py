"""The rule of the agent that wrote a recording: where it compacts, what the recording proves, and how the two agree.

A rule is one module with an `AGENT`, and one line in `registry.AGENTS`.
"""

from __future__ import annotations

from guard_core.rules.agreement import Agreement, ExplainedCompaction, MissedCheck
from guard_core.rules.base import Agent, Hypothesis, Moment, OwnRule, Stretch
from guard_core.rules.decisions import OwnChecks, RuleDecision
from guard_core.rules.explanation import Explanation, explain
from guard_core.rules.giving import settings_giving
from guard_core.rules.inference import Interval
from guard_core.rules.kept import KeptMessages, KeptVerdict
from guard_core.rules.registry import AGENTS, agent_of
from guard_core.rules.report import report
from guard_core.rules.settings import RuleNumber

__all__ = [
    "AGENTS",
    "Agent",
    "Agreement",
    "ExplainedCompaction",
    "Explanation",
    "Hypothesis",
    "Interval",
    "KeptMessages",
    "KeptVerdict",
    "MissedCheck",
    "Moment",
    "OwnChecks",
    "OwnRule",
    "RuleDecision",
    "RuleNumber",
    "Stretch",
    "agent_of",
    "explain",
    "report",
    "settings_giving",
]
