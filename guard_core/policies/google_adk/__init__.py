"""Google ADK's event compaction: ranges of events are covered by summaries, by turns or by tokens.

Source of the rules: specification of policies, sections 6 and 7; google-adk 2.13.0, `apps/compaction.py`, and scripted
runs of it. The log stays; a summary covers a range of it, one that contains another replaces it, and overlapping ones
are sent side by side. `sliding_window` summarises after every few turns, the turns before them that overlap once more;
`token_threshold` summarises before a call and after a turn once the last count reaches a number of tokens, the earlier
summary with it, and keeps the newest events. Parallel results are one event, as are consecutive messages of the user.

Not here: rewound turns, calls that run for long or ask for a confirmation, several agents, summaries that the service
makes. A turn without a final answer is taken as interrupted, and not compacted after; the call that failed there is an
event with its error.
"""

from __future__ import annotations

from guard_core.policies.google_adk.context_filter import FILTER_SETTINGS, AdkContextFilter, ContextFilterSettings
from guard_core.policies.google_adk.policy import AdkSlidingWindow, AdkTokenThreshold
from guard_core.policies.google_adk.settings import SLIDING_SETTINGS, TOKEN_SETTINGS, AdkSettings
from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns

SLIDING = PolicyKind(
    AdkSlidingWindow.name,
    "Google ADK (sliding window)",
    "Summarises every few turns, and includes some turns of the previous summary again.",
    lambda **values: AdkSlidingWindow(AdkSettings(**values)),
    SLIDING_SETTINGS,
    judged_by=RecordedRuns("google-adk", "sliding_window"),
    known_problems=(BEGINS_WITH_ANSWER,),
)
TOKENS = PolicyKind(
    AdkTokenThreshold.name,
    "Google ADK (token threshold)",
    "Summarises all but the newest events once the last count reaches a number of tokens.",
    lambda **values: AdkTokenThreshold(AdkSettings(**values)),
    TOKEN_SETTINGS,
    judged_by=RecordedRuns("google-adk", "token_threshold"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "One event at a time",
            "If the newest events alone exceed the threshold, nearly every call summarises just one more event.",
            "measured by running google-adk 2.13.0",
        ),
    ),
)
FILTER = PolicyKind(
    AdkContextFilter.name,
    "Google ADK (context filter)",
    "Sends the last turns alone once there are some more than that.",
    lambda **values: AdkContextFilter(ContextFilterSettings(**values)),
    FILTER_SETTINGS,
    summarises=False,
    judged_by=RecordedRuns("google-adk", "context_filter"),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "The first request is dropped like any other",
            "Nothing at the beginning is kept: what the user asked first is not sent once enough turns follow.",
            "google-adk 2.13.0, run",
        ),
    ),
)
KINDS = (SLIDING, TOKENS, FILTER)
