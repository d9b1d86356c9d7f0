"""Who asked for a recorded compaction, and whether it counts as one."""

from __future__ import annotations

from guard_core.sessions import RecordedCompaction, Session

AUTOMATIC, MANUAL, UNKNOWN = "automatic", "manual", "unknown"
OVERFLOW = "overflow"  # the recorder's word for a compaction that a refused request forced
CUT_OFF = "cut_off"  # ours: pi takes out an answer that ended at its limit of tokens, compacts and asks again
PREFLIGHT = "preflight"  # Kilo's word for a compaction by an estimate of the next request, before that is sent
REQUESTED = "requested"  # ours: OpenHands records one request for what a person or a refused request asked for
POST_TURN = "post_turn"  # ours: made by Codex at the end of a turn, behind the answer that ended it
BY_EXTENSION = "hook"  # ours: an extension of pi made the compaction; the file does not say what asked for it
BY_PLUGIN = "plugin"  # ours: the model had a plugin of OpenCode replace messages, by a rule of its own
RESUME = "resume"  # the trigger of an edit by which a resumed session loaded its history again

# Words of recorders for a compaction that nobody requested: Claude Code and OpenCode, Inspect and pi, Copilot CLI, and
# the mark that this package gives those of ContextGuard. A person's own is "manual" everywhere (Claude Code, OpenCode,
# pi, Copilot CLI).
_AUTOMATIC = frozenset(
    {
        *(
            "auto",
            "automatic",
            "threshold",
            OVERFLOW,
            CUT_OFF,
            PREFLIGHT,
            POST_TURN,
            "image_overflow",
            "memory_pressure",
            "model_switch",
            BY_PLUGIN,
        ),
        "contextguard",
    }
)
# Words for compactions that came at any size: their counts say nothing of a window.
_AT_ANY_SIZE = frozenset({CUT_OFF, POST_TURN, "image_overflow", "memory_pressure", "model_switch", BY_PLUGIN})
_MANUAL = frozenset({"manual", "user"})


def is_counted(item: RecordedCompaction) -> bool:
    """Is it a compaction of its own, and no mere edit of the history."""
    return item.kind != "edit" or (item.tokens_before or 0) > 0


def trigger_of(item: RecordedCompaction | str) -> str:
    """Who asked for a compaction, from the recorder's own word for it."""
    word = (item if isinstance(item, str) else item.trigger).lower()
    return AUTOMATIC if word in _AUTOMATIC else MANUAL if word in _MANUAL else UNKNOWN


def is_automatic(item: RecordedCompaction) -> bool:
    """Did the agent compact by itself. Where the trigger is not recorded it is taken as automatic."""
    return is_counted(item) and trigger_of(item) != MANUAL


def has_telling_size(item: RecordedCompaction) -> bool:
    """Did the agent compact by itself, and for its size."""
    return is_automatic(item) and item.trigger.lower() not in _AT_ANY_SIZE


def is_forced(session: Session, place: int, since: int) -> bool:
    """Did the provider refuse a request as too long right before the compaction at `place` of the session's, that is
    behind event `since`, the place of the last call before it?"""
    recorded = session.compactions[place]
    is_refused = any(since < at <= recorded.at and before <= place for at, before in session.refused_places)
    return is_refused or recorded.trigger == OVERFLOW
