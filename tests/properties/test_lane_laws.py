"""Laws of lanes: they are what a search through every request, built message by message, gives."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from guard_core.events import TextPart, ToolResultPart, value_text
from guard_core.facts.lanes import HELD, Search, Snippet, SnippetState, places_of
from guard_core.facts.searchable import text_of
from guard_core.facts.texts import quotation, quotes
from guard_core.findings.facts import Facts
from guard_core.outcomes.sent import SentRequests
from guard_core.quoting import readings
from guard_core.replay import replay
from guard_core.requests import materialise
from guard_core.sessions import Evidence, RecordedCompaction
from guard_core.views import Inserted, Span, Synthetic
from tests.builders import user
from tests.properties.strategies import sessions, summarizers, windows
from tests.properties.test_policy_laws import listed_policies

WORDS = ("the zebra rule", "quagga.toml", "4,711 okapis")


@st.composite
def marked_sessions(draw):
    """Sessions whose texts and results begin or end with some of the words."""
    session = draw(sessions())
    events = tuple(
        msgspec.structs.replace(event, parts=tuple(marked(part, draw) for part in event.parts))
        for event in session.events
    )
    return msgspec.structs.replace(session, events=events)


def marked(part, draw):
    if not isinstance(part, TextPart | ToolResultPart):
        return part
    words = draw(st.sampled_from(("", "", "", *WORDS)))
    text = part.text if isinstance(part, TextPart) else value_text(part.content)
    text = f"{words} {text}" if draw(st.booleans()) else f"{text} {words}"
    return msgspec.structs.replace(part, **{"text" if isinstance(part, TextPart) else "content": text})


@st.composite
def compacted_sessions(draw):
    """The same with recorded compactions that leave a summary and some stretch of the log before them."""
    session = draw(marked_sessions())
    ats = sorted(set(draw(st.lists(st.integers(1, max(1, len(session.events))), max_size=3))))
    compactions = []
    for at in ats:
        start, stop = sorted(draw(st.tuples(st.integers(0, at), st.integers(0, at))))
        summary = user(f"Summary: {draw(st.sampled_from(('', *WORDS)))} and more.", meta=True)
        base = (Inserted(0), *((Span(start, stop),) if start < stop else ()))
        compactions.append(RecordedCompaction(at, Evidence.DECLARED, "summary", base, (summary,), "auto"))
    return msgspec.structs.replace(session, compactions=tuple(compactions))


def check_lanes(session, sent):
    snippets = tuple(Snippet("typed", words) for words in WORDS)
    places = places_of(snippets, enumerate(session.events))
    search = Search(sent, snippets, places, session.events.__getitem__)
    states, lanes = search.states(), search.lanes()
    for row, words in enumerate(WORDS):
        plain = searched(session, sent, quotation(words))
        assert [SnippetState(value) for value in states[row].tolist()] == plain
        assert [state for start, stop, state in lanes[row].runs() for _ in range(start, stop)] == plain
        held = [step for step, state in enumerate(plain) if state in HELD]
        assert lanes[row].last_step == (held[-1] if held else -1)
        is_gone = bool(plain) and plain[-1] is SnippetState.GONE  # also out of a summary that could not be read
        assert (lanes[row].lost is None) == (not (held or is_gone) or held[-1:] == [len(plain) - 1])


def searched(session, sent, words):
    """The state at every step by reading all messages of every request."""
    states, known = [], False
    logged = [quotes(readings(text_of(event.parts)), words) for event in session.events]
    for step, call in enumerate(session.calls):
        view, epoch = sent.view(step)
        state = SnippetState.GONE
        for segment in view:
            texts = [readings(text_of(message.parts)) for message in materialise((segment,), session, epoch)]
            holds = any(quotes(text, words) for text in texts)
            if isinstance(segment, Synthetic) and segment.text is None:
                better = SnippetState.UNKNOWN if segment.bytes else SnippetState.GONE
            elif holds:
                better = SnippetState.QUOTED if isinstance(segment, Synthetic | Inserted) else SnippetState.VERBATIM
            else:
                better = SnippetState.GONE
            state = min(state, better)
        known |= state in HELD or (state is SnippetState.UNKNOWN and any(logged[: call.at]))
        states.append(state if known else SnippetState.NOT_YET)
    return states


@given(marked_sessions(), listed_policies(), windows, summarizers)
def test_the_lanes_of_a_replay_are_those_of_a_search_through_its_requests(session, policy, window, summarizer):
    facts = Facts.of(session)
    trace = replay(facts.ledger, policy, window=window, usage=facts.usage, summarizer=summarizer)
    check_lanes(session, SentRequests.replayed(facts, trace))


@given(compacted_sessions())
def test_the_lanes_of_a_recording_are_those_of_a_search_through_its_requests(session):
    check_lanes(session, SentRequests.recorded(Facts.of(session)))
