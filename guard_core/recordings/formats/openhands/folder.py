"""The folder of a conversation as OpenHands' SDK keeps it, in a ZIP archive: a file for each event, and its state.

Names: `openhands/sdk/conversation/persistence_const.py` of openhands-sdk 1.58.2. The state holds the agent with the
settings of its condenser, and the usage of every response (`stats`), which the events do not have.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from typing import NamedTuple

from guard_core.errors import RecordingError
from guard_core.recordings.formats.openhands.conversations import is_event
from guard_core.recordings.reading import fields
from guard_core.recordings.reading.bundle import Bundle
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource
from guard_core.sessions import AgentSetting

STATE = "base_state.json"
_EVENT = re.compile(r"(?P<folder>(?:.*/)?)events/event-(?P<number>\d{5,18})-[0-9a-fA-F-]{8,}\.json")
_CONDENSER = "LLMSummarizingCondenser"
_SETTINGS = ("max_size", "keep_first", "max_tokens")  # of that condenser


class Folder(NamedTuple):
    """The entries of one conversation: its events in the order of their numbers, and its state, "" without one."""

    name: str
    events: tuple[tuple[int, str], ...]
    state: str


def folders(names: Iterable[str]) -> list[Folder]:
    """The conversations in an archive, by the names of its entries."""
    every = list(names)
    events: dict[str, list[tuple[int, str]]] = {}
    for name in every:
        if match := _EVENT.fullmatch(name):
            events.setdefault(match["folder"], []).append((int(match["number"]), name))
    known = set(every)
    return [
        Folder(folder.rstrip("/").rpartition("/")[2], tuple(sorted(inside)), state if state in known else "")
        for folder, inside in sorted(events.items())
        for state in [f"{folder}{STATE}"]
    ]


def holds_events(source: ByteSource) -> bool:
    """Does an archive hold a conversation?"""
    with Bundle(source, noting=False) as bundle:
        for folder in folders(bundle.names()):
            with suppress(RecordingError):
                if is_event(value_of(bundle, folder.events[0][1])):
                    return True
    return False


def value_of(bundle: Bundle, name: str) -> JSON:
    """An event or the state, empty where the entry holds no object."""
    with bundle.open(name) as inner:
        value = None if inner is None else inner.json()
    return value if isinstance(value, dict) else {}


def settings_of(state: JSON) -> tuple[AgentSetting, ...]:
    """The settings of the condenser of a conversation's agent."""
    condenser = fields.mapping(fields.mapping(state, "agent"), "condenser")
    if fields.text(condenser, "kind") != _CONDENSER:
        return ()
    stated = ((name, fields.tokens(condenser, name)) for name in _SETTINGS)
    return tuple(AgentSetting(name, value, f"condenser in {STATE}") for name, value in stated if value is not None)
