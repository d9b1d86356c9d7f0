"""The settings of Google ADK's event compaction, with their sources."""

from __future__ import annotations

import msgspec

from guard_core.policies.settings import COUNT, Setting

_SOURCE = "google-adk 2.13.0, EventsCompactionConfig"


class AdkSettings(msgspec.Struct, frozen=True):
    """By name; 0 turns a rule off."""

    token_threshold: int = 0
    event_retention_size: int = 0
    compaction_interval: int = 0
    overlap_size: int = 0


def _turns(interval: int, overlap: int) -> tuple[Setting, ...]:
    return (
        Setting(
            "compaction_interval",
            "Turns between summaries",
            COUNT,
            interval,
            "number of turns after which they are summarised; 0: never; the library has no default",
            _SOURCE,
            unit="turns",
            main=bool(interval),
            sweep=(1, 2, 3, 5) if interval else (),
        ),
        Setting(
            "overlap_size",
            "Turns of overlap",
            COUNT,
            overlap,
            "number of earlier turns that are summarised again; the library has no default",
            _SOURCE,
            unit="turns",
            needs="compaction_interval",
            main=bool(interval),
        ),
    )


SLIDING_SETTINGS = _turns(3, 1)
TOKEN_SETTINGS = (
    Setting(
        "token_threshold",
        "Threshold",
        COUNT,
        100_000,
        "old events are summarised once the count reaches this many tokens; the library has no default",
        _SOURCE,
        unit="tokens",
        least=1,
        main=True,
        sweep=(50_000, 100_000),
    ),
    Setting(
        "event_retention_size",
        "Events kept",
        COUNT,
        10,
        "newest events that stay; the library has no default",
        _SOURCE,
        unit="events",
        main=True,
        sweep=(5, 10, 20),
    ),
    *_turns(0, 0),
)
