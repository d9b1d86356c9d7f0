"""What many sessions together prove of their agents' thresholds: one row per agent, version, model and window.

Pure: sessions' evidence (guard_core.rules.evidence) in, rows and change points out, in an order that does not depend on
the order of the sessions.
"""

from __future__ import annotations

from guard_core.corpus.bounds import Bounds, Place, RowKey, SessionStretch
from guard_core.corpus.changes import Change, Changes, changes_of
from guard_core.corpus.obedience import Obedience, State, obedience_of
from guard_core.corpus.rows import Cluster, RuleTally, TriggerRow, rows_of

__all__ = [
    "Bounds",
    "Change",
    "Changes",
    "Cluster",
    "Obedience",
    "Place",
    "RowKey",
    "RuleTally",
    "SessionStretch",
    "State",
    "TriggerRow",
    "changes_of",
    "obedience_of",
    "rows_of",
]
