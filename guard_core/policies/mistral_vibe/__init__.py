"""Mistral Vibe: a summary and the user's messages at a threshold; two rules, to 3.0.2 and from 3.0.3 on."""

from __future__ import annotations

from typing import Any

from guard_core.policies.mistral_vibe.corrected import CorrectedVibe
from guard_core.policies.mistral_vibe.earlier import EstimatingVibe, MistralVibe
from guard_core.policies.mistral_vibe.settings import (
    BOUNDED,
    CURRENT,
    DECLARED_SHARE,
    DEFAULT_THRESHOLD,
    OLDER,
    USER_BUDGET,
    MistralVibeSettings,
)
from guard_core.policies.pieces.counted import CountedPolicy
from guard_core.policies.pieces.shared_settings import summary_budget
from guard_core.policies.settings import (
    COUNT,
    SHARE,
    SWITCH,
    KnownProblem,
    PolicyKind,
    Profile,
    RecordedRuns,
    Setting,
)
from guard_core.sessions import Session

THRESHOLD = "auto_compact_threshold"
_SOURCE = "measured in 3.0.2 and 3.0.3, specification of new policies section 2"

_POLICIES: dict[str, type[CountedPolicy]] = {BOUNDED: CorrectedVibe, CURRENT: EstimatingVibe, OLDER: MistralVibe}


def _make(**values: Any) -> CountedPolicy:
    """Of another class for each profile, as versions of the agent count differently."""
    settings = MistralVibeSettings(**values)
    return _POLICIES[settings.profile](settings)


def _of_session(session: Session) -> dict[str, Any]:
    """A file of Vibe has the threshold that results, and not whether it follows from a declared window."""
    stated = session.agent_format == "mistral-vibe" and any(item.name == THRESHOLD for item in session.settings)
    return {"window_declared": False} if stated else {}


KIND = PolicyKind(
    "mistral-vibe",
    "Mistral Vibe",
    "Compacts at a set threshold, or at one that follows from the window; keeps the user's messages and a summary.",
    _make,
    (
        Setting(
            THRESHOLD,
            "Threshold",
            COUNT,
            0,
            "auto_compact_threshold; 0: not set. Up to 3.0.2 it is ignored unless it is below a declared window",
            _SOURCE,
            unit="tokens",
            main=True,
            profiles={OLDER: DEFAULT_THRESHOLD},
            sweep=(0, 100_000, 150_000, 168_000),
        ),
        Setting(
            "window_declared",
            "Window declared",
            SWITCH,
            True,
            "max_context_length is set for the model; otherwise the threshold is 200,000",
            _SOURCE,
            main=True,
            not_in=(BOUNDED, OLDER),
            profiles={OLDER: False},
        ),
        Setting(
            "share",
            "Share",
            SHARE,
            DECLARED_SHARE,
            "share of a declared window",
            _SOURCE,
            not_in=(BOUNDED, OLDER),
            needs="window_declared",
        ),
        Setting(
            "user_budget",
            "User messages",
            COUNT,
            USER_BUDGET,
            "budget for the user's newest messages, which stay",
            _SOURCE,
            unit="tokens",
        ),
        summary_budget(),
    ),
    (
        Profile(BOUNDED, "3.0.3: the window minus 60,000 tokens, compared with a corrected estimate"),
        Profile(CURRENT, "2.26 to 3.0.2: 80 % of a declared window"),
        Profile(OLDER, "before 2.26: the same threshold for every window, no estimate"),
    ),
    of_session=_of_session,
    judged_by=RecordedRuns("mistral-vibe", "compaction", settings={"profile": BOUNDED}),
    known_problems=(
        KnownProblem(
            "Large results go unnoticed",
            "To 3.0.2 the count is that of the last answer, without results that came since, unless Vibe's own "
            "estimate of the whole request, a quarter of its bytes, is more.",
            "measured in 2.26.1 and 3.0.2; 3.0.3 adds them",
        ),
    ),
)
