"""A gate for continuous integration: recordings replayed under a policy, and what may not happen in any of them.

`judging` replays a session and counts what went wrong; `rules` finds the rules of the user that a replay loses;
`corpus` replays files, in processes; `baseline` says what got worse; `output` writes JUnit XML and HTML; `testing`
has an assertion for tests, which `pytest_plugin` offers as a fixture.
"""

from guard_core.gate.baseline import Baseline, read_baseline, worse
from guard_core.gate.corpus import CaseResult, run_corpus
from guard_core.gate.judging import KINDS, Under, check_kinds, counts_of
from guard_core.gate.output import html, junit
from guard_core.gate.testing import assert_compaction

__all__ = [
    "KINDS",
    "Baseline",
    "CaseResult",
    "Under",
    "assert_compaction",
    "check_kinds",
    "counts_of",
    "html",
    "junit",
    "read_baseline",
    "run_corpus",
    "worse",
]
