"""Hermes Agent: prunes old tool results, keeps a tail of a budget of tokens, and summarises what lies before it.

Source of the rules: specification of policies, section 1, of new policies, section 1, and scripted runs of version
0.19.0. Profile `seed` is the compressor after pull request 6453 (April 2026), `before` is 0.19.0, `current` that of
mid-2026, and `lean` what pull request 95571 made the default in August 2026.

Where the texts of the session are known (a live guard, recorded runs of the library), old messages, summaries and
estimates are those of 0.19.0, by size: its fixed texts are not repeated here. Without texts a pruned result is a fixed
text, repeated results and long arguments stay, pictures stay, and a call without its result stays.

Not here, of `lean`: results of 1,500 characters and more in the tail demoted but for the newest six tool rounds, and
the index of identifiers in the summary. Not here, of later versions: bulky results in the protected end demoted under
pressure, the proactive prune, more than one anchored user message, thresholds by model. Secrets are not redacted. The
note that `seed` appends to the system message is not counted. Where the user breaks off a turn behind tool results, the
check after these is not made. A list whose head holds all of it (a request and one call with many results) is left as
it is; 0.19.0 fails there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.policies.hermes.policy import Hermes
from guard_core.policies.hermes.settings import MOST_RATIO, PROFILES, SETTINGS, HermesSettings
from guard_core.policies.settings import BEGINS_WITH_ANSWER, KnownProblem, PolicyKind, RecordedRuns
from guard_core.sessions import Session


def hermes_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings: it takes a share of the tail above its largest one as that one."""
    ratio = parameters.get("summary_target_ratio")
    largest = isinstance(ratio, int | float) and ratio > MOST_RATIO
    return {**parameters, "summary_target_ratio": MOST_RATIO} if largest else dict(parameters)


def _of_session(session: Session) -> dict[str, Any]:
    """A recording of Hermes is its database."""
    return {"stored": True} if session.format == "hermes" else {}


KIND = PolicyKind(
    "hermes",
    "Hermes",
    "Prunes old tool results, keeps the first messages and a tail within a token budget, and summarises the middle.",
    lambda **values: Hermes(HermesSettings(**values)),
    SETTINGS,
    PROFILES,
    of_session=_of_session,
    judged_by=RecordedRuns(
        "hermes-agent",
        "context_compressor",
        {
            "threshold_tokens": "threshold_cap",
            "max_tokens": "reserved_output",
            "summary_target_ratio": "target_ratio",
            "abort_on_summary_failure": "abort_on_failure",
        },
        # Identifiers of the scripts, and a prune that 0.19.0 bounds by tokens alone.
        {"round_up": False, "prune_floor": 0, "call_frame": 82, "result_frame": 60},
        tokens_column="estimate_sent",
        writes_summaries=True,
        joint="",
        settings_of=hermes_settings,
    ),
    known_problems=(
        BEGINS_WITH_ANSWER,
        KnownProblem(
            "The tail exceeds its budget",
            (
                "A cut just after a complete tool group is moved before the group, which stays although it "
                "does not fit the budget."
            ),
            "NousResearch/hermes-agent issue 108647, pull request 67108",
        ),
        KnownProblem(
            "The budget has no effect (seed)",
            "Pruning stops before the last `protect_last_n` messages, whatever the token budget.",
            "NousResearch/hermes-agent pull requests 6240 and 6453",
        ),
        KnownProblem(
            "The summary is lost",
            "A summary that should be merged into the next message is never sent if no message follows it.",
            "hermes-agent 0.19.0, agent/context_compressor.py",
        ),
        KnownProblem(
            "An error instead of a compaction",
            (
                "If only tool results follow the protected first messages, as after many calls at once in the first "
                "answer, the library raises an error, and the messages stay."
            ),
            "hermes-agent 0.19.0, by running; NousResearch/hermes-agent issue 75588",
        ),
        KnownProblem(
            "Compacts in vain",
            "A list whose first messages and tail exceed the threshold is compacted again and again without shrinking.",
            "NousResearch/hermes-agent issue 40803",
        ),
    ),
)
