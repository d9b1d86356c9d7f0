"""What would have avoided a finding: the nearest published setting, window or policy under which a replay lacks it.

`goals` says what "avoided" means, `ways` which settings are tried, `search` replays them and says what came of it.
"""

from guard_core.avoiding.goals import GOALS, Goal, goal_of, nothing_words
from guard_core.avoiding.search import Answer, Remedy, ReplayOutcome, avoid
from guard_core.avoiding.ways import StartingSettings, Way, base_of

__all__ = [
    "GOALS",
    "Answer",
    "Goal",
    "Remedy",
    "ReplayOutcome",
    "StartingSettings",
    "Way",
    "avoid",
    "base_of",
    "goal_of",
    "nothing_words",
]
