"""The flow of an agent as the simulator plays it: append-only events and a fresh request per step.

Source: design document 001 and the simulator of ContextGuard's own tests (specification, section 13.1). A step is one
model call; none follows the final text of a turn.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from guard_core import defaults
from guard_core.events import Event, MediaPart, Part, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.sessions import ModelCall, Provenance, Session, Sourced, ToolDefinition

_FILLER = (
    "The agent looks at the next thing and writes down what it finds, word by word, until the message is long enough. "
)
NEVER_REPORTED = 2**31  # a step that no session reaches


class Turn(msgspec.Struct, frozen=True, omit_defaults=True):
    """One user turn. Sizes in bytes; `tools` are (name, size of the result), `inline` (MIME type, raw bytes)."""

    user_bytes: int
    model_bytes: int = defaults.SIMULATED_REPLY
    tools: tuple[tuple[str, int], ...] = ()
    sequential: bool = False
    inline: tuple[tuple[str, int], ...] = ()


class Simulation(msgspec.Struct, frozen=True, omit_defaults=True):
    """One agent's life: its window, fixed costs, turns, and a provider that counts `ratio` tokens per heuristic token.

    `reported_from` is the first turn whose usage is reported, None for a provider that never reports.
    """

    window: int
    turns: tuple[Turn, ...]
    ratio: float = 2.0
    reported_from: int | None = 0
    system_bytes: int = 0
    tools: tuple[ToolDefinition, ...] = ()
    summary_bytes: int = defaults.SUMMARY_BYTES
    model: str = ""


@dataclass(frozen=True)
class Flow:
    """What a simulation gives: the session, and a label and turn number for every step."""

    session: Session
    labels: tuple[str, ...]
    turns: tuple[int, ...]


@dataclass
class _SimulatedLog:
    events: list[Event] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)
    turns: list[int] = field(default_factory=list)

    def step(self, turn: int, label: str) -> None:
        """A model call over the events so far."""
        self.calls.append(len(self.events))
        self.labels.append(label)
        self.turns.append(turn)

    def add(self, role: Role, *parts: Part) -> None:
        self.events.append(Event(role=role, parts=parts))


def play(simulation: Simulation, *, title: str = "") -> Flow:
    """Play a simulation's turns into a session that can be opened like any other."""
    log = _SimulatedLog()
    for number, turn in enumerate(simulation.turns):
        _play_turn(log, number, turn)
    first = simulation.reported_from
    reported = (step for step, turn in enumerate(log.turns) if first is not None and turn >= first)
    session = Session(
        events=tuple(log.events),
        calls=tuple(
            ModelCall(at=at, response=at if at < len(log.events) else None, model=simulation.model) for at in log.calls
        ),
        system=(TextPart(filler(simulation.system_bytes)),) if simulation.system_bytes else (),
        tools=simulation.tools,
        format="simulation",
        title=title,
        model=simulation.model,
        window=Sourced(simulation.window, Provenance.ASSUMED, "set by the scenario"),
        usage_ratio=simulation.ratio,
        usage_reported_from=next(reported, NEVER_REPORTED),
        notes=("simulated: prompt tokens are the heuristic estimate times the scenario's ratio",),
    )
    return Flow(session, tuple(log.labels), tuple(log.turns))


def _play_turn(log: _SimulatedLog, number: int, turn: Turn) -> None:
    media = (MediaPart(mime=mime, size=size) for mime, size in turn.inline)
    log.add(Role.USER, TextPart(filler(turn.user_bytes)), *media)
    log.step(number, "user-msg")
    pairs = [_pair(f"call_{number}_{index}", name, size) for index, (name, size) in enumerate(turn.tools)]
    if pairs and not turn.sequential:
        log.add(Role.MODEL, *(call for call, _ in pairs))
        log.add(Role.USER, *(result for _, result in pairs))
        log.step(number, "tool-results")
    elif pairs:
        for index, (call, result) in enumerate(pairs):
            log.add(Role.MODEL, call)
            log.add(Role.USER, result)
            log.step(number, f"tool-chain-{index}")
    log.add(Role.MODEL, TextPart(filler(turn.model_bytes)))


def _pair(id_: str, name: str, size: int) -> tuple[ToolCallPart, ToolResultPart]:
    """A call with a small argument, and its result of `size` characters."""
    call = ToolCallPart(name, {"param": "value"}, id_)
    return call, ToolResultPart(name, {"result": "x" * size}, id_)


def filler(size: int) -> str:
    """ASCII text of exactly `size` bytes."""
    return (_FILLER * (size // len(_FILLER) + 1))[:size]


def sized_tool(name: str, description_bytes: int, schema_bytes: int) -> ToolDefinition:
    """A tool definition whose compact JSON schema has exactly `schema_bytes` bytes; 0 for no schema."""
    schema = None if not schema_bytes else 0 if schema_bytes == 1 else "x" * (schema_bytes - 2)
    return ToolDefinition(name=name, description=filler(description_bytes), schema=schema)
