"""What many sessions together prove of their agents' thresholds: one row per agent, version, model and window.

Pure: sessions' evidence (guard_core.rules.evidence) in, rows and change points out, in an order that does not depend on
the order of the sessions.
"""

from __future__ import annotations

from guard_core.corpus.bounds import Bounds, CheckPlace, RowKey, SessionStretch
from guard_core.corpus.changes import ThresholdChange, ThresholdChanges, changes_of
from guard_core.corpus.obedience import Obedience, ObedienceState, obedience_of
from guard_core.corpus.rows import Cluster, RuleTally, TriggerRow, rows_of

__all__ = [
    "Bounds",
    "CheckPlace",
    "Cluster",
    "Obedience",
    "ObedienceState",
    "RowKey",
    "RuleTally",
    "SessionStretch",
    "ThresholdChange",
    "ThresholdChanges",
    "TriggerRow",
    "changes_of",
    "obedience_of",
    "rows_of",
]
