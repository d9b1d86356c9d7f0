"""Laws of this project's own export: whatever a session holds, it comes back as it was."""

from hypothesis import given
from hypothesis import strategies as st

from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.events import (
    Event,
    MediaPart,
    OtherPart,
    ReasoningPart,
    Role,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from guard_core.recordings import read
from guard_core.recordings.formats import native
from guard_core.sessions import (
    Evidence,
    GuardState,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Session,
    Sourced,
    ToolDefinition,
)
from guard_core.views import Inserted, Rewritten, Span, Synthetic

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=60)
COUNT = st.integers(0, 2**53)
WINDOW = st.just(0) | st.integers(MIN_WINDOW, MAX_WINDOW)
MAYBE_COUNT = st.none() | COUNT
TIME = st.none() | st.floats(0, 2.5e11)
NUMBER = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False).map(lambda x: x + 0.0)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=12,
)
METADATA = st.none() | st.dictionaries(TEXT, VALUE, max_size=3)
PART = st.one_of(
    st.builds(TextPart, TEXT, METADATA),
    st.builds(ReasoningPart, TEXT, COUNT, METADATA),
    st.builds(ToolCallPart, TEXT, VALUE, TEXT, METADATA),
    st.builds(ToolResultPart, TEXT, VALUE, TEXT, st.booleans(), METADATA),
    st.builds(MediaPart, TEXT, COUNT, TEXT, METADATA),
    st.builds(OtherPart, TEXT, VALUE, METADATA),
)
EVENT = st.builds(
    Event,
    role=st.sampled_from(Role),
    parts=st.lists(PART, max_size=4).map(tuple),
    source_id=TEXT,
    line=MAYBE_COUNT,
    timestamp=TIME,
    author=TEXT,
    meta=st.booleans(),
)


@st.composite
def calls(draw: st.DrawFn, size: int) -> ModelCall:
    """A call somewhere in a log of `size` events."""
    response = st.none() | st.integers(0, size - 1) if size else st.none()
    counts = [draw(MAYBE_COUNT) for _ in range(4)]
    return ModelCall(draw(st.integers(0, size)), draw(response), *counts, draw(TEXT), draw(TIME), draw(MAYBE_COUNT))


@st.composite
def compactions(draw: st.DrawFn, size: int) -> RecordedCompaction:
    """A recorded compaction somewhere in a log of `size` events."""
    messages = tuple(draw(st.lists(EVENT, max_size=2)))
    ends = sorted(draw(st.tuples(st.integers(0, size), st.integers(0, size))))
    view = [Span(*ends), Synthetic(draw(TEXT), draw(COUNT), draw(st.none() | TEXT))]
    view += [Inserted(index) for index in range(len(messages))]
    view += [Rewritten(draw(st.integers(0, size - 1)), draw(EVENT), draw(TEXT))] if size else []
    return RecordedCompaction(
        at=draw(st.integers(0, size)),
        evidence=draw(st.sampled_from(Evidence)),
        kind=draw(TEXT),
        base=tuple(view),
        messages=messages,
        tokens_before=draw(MAYBE_COUNT),
        summariser=draw(st.none() | calls(size)),
        note=draw(TEXT),
    )


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Any session whose pointers point into it."""
    events = tuple(draw(st.lists(EVENT, max_size=5)))
    size = len(events)
    in_order = {"key": lambda item: item.at}
    tools = st.lists(st.builds(ToolDefinition, TEXT, TEXT, VALUE), max_size=2).map(tuple)
    return Session(
        events=events,
        calls=tuple(sorted(draw(st.lists(calls(size), max_size=3)), **in_order)),
        side_calls=tuple(draw(st.lists(calls(size), max_size=2))),
        compactions=tuple(sorted(draw(st.lists(compactions(size), max_size=2)), **in_order)),
        guard_states=tuple(draw(st.lists(st.builds(GuardState, st.integers(0, size), TEXT, TEXT, COUNT), max_size=2))),
        system=draw(st.none() | st.lists(PART, max_size=2).map(tuple)),
        tools=draw(st.none() | tools),
        format=draw(TEXT),
        title=draw(TEXT),
        window=draw(st.none() | st.builds(Sourced, WINDOW, st.sampled_from(Provenance), TEXT)),
        started_at=draw(TIME),
        notes=tuple(draw(st.lists(TEXT, max_size=2))),
        usage_ratio=draw(st.none() | st.floats(0.01, 100)),
        usage_reported_from=draw(COUNT),
        prompt_tokens_total=draw(MAYBE_COUNT),
        total_calls=draw(MAYBE_COUNT),
    )


@given(sessions())
def test_an_exported_session_comes_back_exactly(session):
    recording = read(native.write(session), strict=True)

    assert recording.sessions == (session,)
    assert native.write(recording.sessions[0]) == native.write(session)


@given(st.lists(sessions(), min_size=1, max_size=3))
def test_several_sessions_come_back_exactly(found):
    assert read(b"".join(native.write_all(found)), strict=True).sessions == tuple(found)
