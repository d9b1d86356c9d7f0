"""Sessions altered at random, as an agent, a person or a damaged file may alter them; each stays a valid session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from msgspec.structs import replace

from guard_core.events import Event, ReasoningPart, Role, TextPart
from guard_core.sessions import Evidence, ModelCall, Provenance, RecordedCompaction, Session, Sourced
from guard_core.views import JOINED, Inserted, Rewritten, Segment, Span, View

TRIGGERS = ("auto", "manual", "", "threshold", "overflow", "user")
KINDS = ("summary", "summary+tail", "trim", "edit", "opaque", "fallback")
MODELS = ("claude-sonnet-4-5", "gpt-5.2", "nameless", "claude-opus-4-5[1m]", "gpt-4o")
FORMATS = (
    *("", "claude-code", "adk", "codex", "crush", "pi", "opencode", "gemini-cli", "hermes", "openhands"),
    *("inspect", "qwen-code", "kimi-cli", "kimi-code", "mistral-vibe", "cline", "langchain"),
)
VERSIONS = ("", "2.1.14", "2.1.62", "2.1.154", "2.1.330", "0.169.0")


def altered(session: Session, seed: int) -> Session:
    """The session after one to six changes."""
    chance = Random(seed)
    for change in chance.choices(CHANGES, k=chance.randint(1, 6)):
        session = change(chance, session)
    return session


def _requests(session: Session) -> list[str]:
    """What users wrote."""
    parts = [part for event in session.events if event.starts_turn() for part in event.parts]
    return [part.text for part in parts if isinstance(part, TextPart) and part.text] or ["do as we agreed yesterday"]


def _moved(session: Session, events: Iterable[Event], place: Callable[[int], int]) -> Session:
    """The session with another log; `place` gives the new number of every old place in it."""
    log = tuple(events)

    def view(base: View) -> View:
        moved: list[Segment] = []
        for part in base:
            if isinstance(part, Span):
                span = replace(part, start=place(part.start), stop=place(part.stop))
                moved += [span] if span.start < span.stop else []
            else:
                moved.append(replace(part, event=place(part.event)) if isinstance(part, Rewritten) else part)
        return tuple(moved)

    def answer(call: ModelCall) -> int | None:
        new = None if call.response is None else place(call.response)
        return new if new is not None and new < len(log) else None

    calls = tuple(replace(call, at=place(call.at), response=answer(call)) for call in session.calls)
    compactions = tuple(replace(item, at=place(item.at), base=view(item.base)) for item in session.compactions)
    versions = tuple((place(at), name) for at, name in session.versions)
    states = tuple(replace(state, at=place(state.at)) for state in session.guard_states)
    changed = {
        "calls": tuple(call for call in calls if call.at > 0),
        "compactions": compactions,
        "guard_states": states,
    }
    return replace(session, events=log, versions=versions, sub_agents=(), **changed)


def _asks_again(chance: Random, session: Session) -> Session:
    words, at = chance.choice(_requests(session)), chance.randint(0, len(session.events))
    quotation = chance.choice(
        [words, f'"{words}"', f"“{words[:60]}” — 'no'", f"… {words}", words[: chance.randint(1, 200)]]
    )
    event = Event(Role.USER, (TextPart(quotation),), meta=chance.random() < 0.2)
    return _moved(session, (*session.events[:at], event, *session.events[at:]), lambda old: old + (old >= at))


def _forgets(chance: Random, session: Session) -> Session:
    """Some messages are missing: at the beginning, at the end or between."""
    size = len(session.events)
    start = chance.choice([0, chance.randrange(size)])
    stop = min(size - (start == 0), start + chance.randint(0, 9))  # one is left
    left = (*session.events[:start], *session.events[stop:])
    return (
        _moved(session, left, lambda old: old if old <= start else max(start, old - stop + start)) if left else session
    )


def _repeats(chance: Random, session: Session) -> Session:
    start = chance.randrange(len(session.events))
    stop, times = min(len(session.events), start + chance.randint(1, 6)), chance.randint(1, 8)
    more = [replace(event) for event in session.events[start:stop] * times]  # alike, and yet other messages
    log = (*session.events[:stop], *more, *session.events[stop:])
    longer = _moved(session, log, lambda old: old if old <= stop else old + len(more))
    calls = [ModelCall(stop + number * (stop - start), model=session.model) for number in range(1, times + 1)]
    return replace(longer, calls=tuple(sorted((*longer.calls, *calls), key=lambda call: call.at)))


def _compaction(chance: Random, session: Session, at: int) -> RecordedCompaction:
    requests, kind = (
        _requests(session),
        chance.choice(["summary", "summary+tail", "trim", "edit", "opaque", "fallback"]),
    )
    words = chance.choice(
        ["", "All is well.", f"The user said: {chance.choice(requests)}", chance.choice(requests).upper()]
    )
    sealed = kind == "opaque" or chance.random() < 0.1
    messages = [Event(Role.USER, (ReasoningPart(opaque_bytes=900) if sealed else TextPart(words),), meta=True)]
    messages = [] if kind in ("trim", "edit") else messages
    edges = sorted(chance.choices(range(at + 1), k=3))
    base: list[Segment] = [Span(0, edges[0]), *(Inserted(number) for number in range(len(messages)))]
    base += chance.choice([[], [Span(edges[1], edges[2])], [Span(edges[1], at)]])
    if at and chance.random() < 0.3:
        event = chance.randrange(at)
        text = Event(session.events[event].role, (TextPart(chance.choice(requests)[:90]),))
        base.append(Rewritten(event, text, chance.choice([JOINED, "pruned"])))
    view = tuple(part for part in base if not isinstance(part, Span) or part.start < part.stop)
    compaction = RecordedCompaction(at, Evidence.DECLARED, kind, view, tuple(messages), trigger=chance.choice(TRIGGERS))
    if kind == "edit" and chance.random() < 0.4:
        return replace(compaction, trigger="resume")
    return replace(compaction, tokens_before=chance.choice([None, None, 8_000, 150_000, chance.randint(1, 300_000)]))


def _compacts(chance: Random, session: Session) -> Session:
    """One compaction more, one less, or one that is told otherwise."""
    compactions = list(session.compactions)
    if compactions and chance.random() < 0.6:
        item = compactions.pop(chance.randrange(len(compactions)))
        restated = replace(
            item, trigger=chance.choice(TRIGGERS), tokens_before=chance.choice([None, 1, 5_000, 170_000])
        )
        compactions += chance.choice([[], [restated], [_compaction(chance, session, item.at)]])
    else:
        compactions.append(_compaction(chance, session, chance.randint(1, len(session.events))))
    return replace(session, compactions=tuple(sorted(compactions, key=lambda item: item.at)))


def _counts_otherwise(chance: Random, session: Session) -> Session:
    share, factor, how = chance.choice([0.02, 0.3, 1]), chance.choice([0.1, 0.5, 2, 10]), chance.randrange(4)

    def told(call: ModelCall) -> ModelCall:
        if chance.random() >= share:
            return call
        count = call.prompt_tokens or 0
        prompt = (None, int(count * factor) or None, chance.randint(0, 250_000), count or None)[how]
        return replace(call, prompt_tokens=prompt, cached_tokens=chance.choice([call.cached_tokens, None, 0]))

    return replace(session, calls=tuple(map(told, session.calls)))


def _calls_otherwise(chance: Random, session: Session) -> Session:
    """Calls are missing, repeated, or answered by another model."""
    share, model = chance.choice([0.05, 0.5]), chance.choice(MODELS)
    calls: list[ModelCall] = []
    how = chance.randrange(3)
    for call in session.calls:
        if chance.random() >= share:
            calls.append(call)
        elif how:
            calls += [call, call] if how == 1 else [replace(call, model=model)]
    return replace(session, calls=tuple(calls) or session.calls)


def _is_another_agents(chance: Random, session: Session) -> Session:
    version, size = chance.choice(VERSIONS), chance.choice([4_000, 20_000, 60_000, 128_000, 200_000, 1_000_000])
    window = chance.choice([session.window, None, Sourced(size, Provenance.RECORDER), Sourced(size, Provenance.USER)])
    versions = ((0, version),) if version else ()
    return replace(session, format=chance.choice([*FORMATS, session.format]), versions=versions, window=window)


CHANGES: tuple[Callable[[Random, Session], Session], ...] = (
    *(_asks_again, _forgets, _repeats),
    *(_compacts, _compacts, _compacts, _counts_otherwise, _calls_otherwise, _is_another_agents),
)
