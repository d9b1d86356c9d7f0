"""Random sessions, settings and summarisers, small enough to run thousands of them."""

from __future__ import annotations

from hypothesis import strategies as st

from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.policies import get_policy
from guard_core.sessions import ModelCall, Provenance, Session, Sourced
from guard_core.summaries.sizes import FixedSummaries, NoSummaries, ScriptedSummaries, ShareSummaries

# What happens next in a conversation, and how much of it there is.
KINDS = ("user", "user", "answer", "answer", "tool", "tool", "chain", "parallel", "split", "think", "image", "forged")
sizes = st.sampled_from([0, 1, 3, 40, 399, 1_200, 5_000, 30_000])


def events_of(kind: str, size: int, number: int) -> list[Event]:
    """The events of one happening."""
    text, id_ = TextPart("x" * size), f"c{number}"
    call, result = ToolCallPart("look", {"at": "here"}, id_), ToolResultPart("look", {"out": "y" * size}, id_)
    other, more = ToolCallPart("find", {}, id_ + "b"), ToolResultPart("find", "z" * 9, id_ + "b")
    match kind:
        case "user":
            return [Event(Role.USER, (text,))]
        case "answer":
            return [Event(Role.MODEL, (text,))]
        case "tool":
            return [Event(Role.MODEL, (call,)), Event(Role.USER, (result,))]
        case "chain":
            return [
                *(Event(Role.MODEL, (TextPart("next"), call)), Event(Role.USER, (result,))),
                *(Event(Role.MODEL, (other,)), Event(Role.USER, (more, text))),
            ]
        case "parallel":
            return [Event(Role.MODEL, (call, other)), Event(Role.USER, (result, more))]
        case "split":  # parallel calls whose results come one by one
            return [Event(Role.MODEL, (call, other)), Event(Role.USER, (result,)), Event(Role.USER, (more,))]
        case "think":
            return [Event(Role.MODEL, (ReasoningPart("x" * size), TextPart("ok")))]
        case "image":
            return [Event(Role.USER, (TextPart("see"), MediaPart("image/png", size * 3)))]
        case _:
            return [Event(Role.USER, (TextPart("[Previous conversation summary] " + "x" * size),))]


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """A log of up to thirty happenings, called at some of its lengths; counts come always, never or sometimes."""
    happenings = draw(st.lists(st.tuples(st.sampled_from(KINDS), sizes), min_size=1, max_size=30))
    events = [event for number, (kind, size) in enumerate(happenings) for event in events_of(kind, size, number)]
    skipped = draw(st.integers(0, 3))
    ats = [at for at in range(len(events) + 1) if at % (skipped + 1) == 0]
    reported = draw(st.sampled_from(["always", "never", "sometimes"]))
    ratio = draw(st.sampled_from([None, 0.5, 1.8, 2.0, 3.3, 7.0]))
    calls = tuple(ModelCall(at=at, prompt_tokens=_count(reported, ratio, at)) for at in ats)
    return Session(
        events=tuple(events),
        calls=calls,
        system=(TextPart("s" * draw(sizes)),),
        window=Sourced(8_000, Provenance.USER),
        usage_ratio=ratio,
        usage_reported_from={"always": 0, "sometimes": 3, "never": 10**6}[reported],
    )


def _count(reported: str, ratio: float | None, at: int) -> int | None:
    if ratio is not None or reported == "never" or (reported == "sometimes" and at % 2):
        return None
    return 700 + 311 * at


windows = st.sampled_from([0, 500, 1_000, 8_000, 30_000, 200_000])
summarizers = st.one_of(
    st.sampled_from(
        [FixedSummaries(1), FixedSummaries(120), FixedSummaries(9_000), NoSummaries(), ShareSummaries("high")]
    ),
    st.lists(st.sampled_from([None, 0, 60, 4_000, 50_000]), min_size=1, max_size=4).map(
        lambda replies: ScriptedSummaries(tuple(replies))
    ),
)
PROFILES = ("tail", "early", "current", "fixed")


@st.composite
def policies(draw: st.DrawFn, profiles: tuple[str, ...] = PROFILES, names: tuple[str, ...] = ()):  # type: ignore[no-untyped-def]
    """A policy of either strategy with settings around the defaults."""
    name = draw(st.sampled_from(names or ("contextguard", "contextguard", "contextguard-sliding")))
    return get_policy(
        name,
        profile=draw(st.sampled_from(profiles)),
        buffer=draw(st.sampled_from(["auto", "auto", "0", "300", "50%", "20000"])),
        cap=draw(st.sampled_from([1.0, 2.0, 5.0])),
        default_factor=draw(st.sampled_from([1.0, 2.5, 4.0])),
        max_passes=draw(st.integers(1, 4)),
        max_turns=draw(st.sampled_from([1, 2, 5, 20])),
        name_request=draw(st.booleans()),
    )
