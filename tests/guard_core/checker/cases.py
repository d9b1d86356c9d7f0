"""Small sessions in which each kind of claim can be made, and claims about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import msgspec

from guard_core.checker.sentences import check_sentence, check_verdict_sentence
from guard_core.checker.story import ReplayStory, Story, Wrong
from guard_core.events import Event, MediaPart, ReasoningPart, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.findings import (
    Facts,
    Finding,
    Verdict,
    recorded_findings,
    recorded_verdict,
    replayed_findings,
    replayed_verdict,
)
from guard_core.gate.rules import lost_rules
from guard_core.policies import get_policy
from guard_core.replay import replay
from guard_core.sessions import (
    AgentSetting,
    Evidence,
    LeftBranches,
    ModelCall,
    Provenance,
    RecordedCompaction,
    Refusal,
    Session,
    Sourced,
)
from guard_core.simulator.flow import play
from guard_core.simulator.scenarios import SCENARIOS
from guard_core.summaries.sizes import FixedSummaries, NoSummaries, SizeModel
from guard_core.trace import Trace
from guard_core.views import CHANGED, Inserted, Rewritten, Span
from guard_core.windows.window_evidence import WindowJudgement
from tests.builders import transcript, user

_NUMBER = re.compile(r"\d+(?:,\d+)*(?:\.\d+)?")
WINDOW = Sourced(100_000, Provenance.RECORDER)
WORDS = "please keep the public interface of the parser as it is today"


@dataclass(frozen=True)
class Claims:
    """What is claimed of one side of a session."""

    session: Session
    window: WindowJudgement
    findings: tuple[Finding, ...]
    verdict: Verdict
    trace: Trace | None = None


def of_recording(session: Session, **settings: str) -> Claims:
    facts = replace(Facts.of(session), settings=settings)
    findings = recorded_findings(facts)
    return Claims(session, facts.window, findings, recorded_verdict(facts, findings))


def of_replay(
    session: Session, policy: str, window: int, summarizer: SizeModel | None = None, **settings: Any
) -> Claims:
    facts = Facts.of(session)
    trace = replay(
        facts.ledger,
        get_policy(policy, **settings),
        window=window,
        usage=facts.usage,
        session=session,
        summarizer=summarizer,
    )
    findings = replayed_findings(facts, trace)
    return Claims(session, facts.window, findings, replayed_verdict(facts, trace, findings), trace)


def of_gate(session: Session, policy: str, window: int) -> Claims:
    """What a gate says of a replay, with its notes on lost rules."""
    claims = of_replay(session, policy, window)
    assert claims.trace is not None
    return replace(claims, findings=(*claims.findings, *lost_rules(Facts.of(session), claims.trace)))


def exchange(
    turns: int,
    *,
    tokens: Callable[[int], int | None],
    compactions: tuple[RecordedCompaction, ...] = (),
    window: Sourced | None = WINDOW,
    words: str = WORDS,
    size: int = 4_000,
    answered: bool = True,
    **fields: Any,
) -> Session:
    """One request, then so many calls, each answered by a step of work; `tokens` gives the count of each call."""
    events = [Event(Role.USER, (TextPart(words),))]
    calls = []
    for turn in range(turns):
        calls.append(ModelCall(len(events), len(events) if answered else None, tokens(turn)))
        events.append(Event(Role.MODEL, (TextPart(f"step {turn}: " + "did some work " * (size // 14)),)))
    return Session(tuple(events), tuple(calls), compactions, window=window, **fields)


def sliding(kept: Callable[[int], int] = lambda turn: 3) -> tuple[RecordedCompaction, ...]:
    """Cuts before the calls of turns 4 to 7 that leave so many of the newest messages and insert nothing."""
    return tuple(
        RecordedCompaction(turn + 1, Evidence.INFERRED, "trim", (Span(turn + 1 - kept(turn), turn + 1),))
        for turn in range(4, 8)
    )


def compaction(turn: int, text: str = "All went well so far.", **fields: Any) -> RecordedCompaction:
    """A summary in place of everything before the call of a turn."""
    message = Event(Role.USER, (TextPart(text),), meta=True)
    values = {"kind": "summary", "base": (Inserted(0),), "messages": (message,), "trigger": "auto", **fields}
    return RecordedCompaction(at=turn + 1, evidence=Evidence.DECLARED, **values)


def growing(start: int = 5_000, by: int = 1_000) -> Callable[[int], int]:
    return lambda turn: start + by * turn


def priced(session: Session) -> Session:
    """The same calls, answered by a model that the price table has."""
    calls = tuple(msgspec.structs.replace(call, model="claude-sonnet-4-5", output_tokens=100) for call in session.calls)
    return msgspec.structs.replace(session, calls=calls, model="claude-sonnet-4-5")


def _cached(session: Session, tokens: int) -> Session:
    """The same calls, with so many tokens read from the cache by each."""
    calls = tuple(msgspec.structs.replace(call, cached_tokens=tokens) for call in session.calls)
    return msgspec.structs.replace(session, calls=calls)


def _answered(session: Session, tokens: int) -> Session:
    """The same calls, the last one answered by so many tokens."""
    *others, last = session.calls
    return msgspec.structs.replace(session, calls=(*others, msgspec.structs.replace(last, output_tokens=tokens)))


def in_characters() -> Session:
    """Counts of characters, which exceed the window and prove nothing of it."""
    built = exchange(9, tokens=growing())
    sizes = [sum(len(event.parts[0].text) for event in built.events[: call.at]) for call in built.calls]
    pairs = zip(built.calls, sizes, strict=True)
    calls = tuple(msgspec.structs.replace(call, prompt_tokens=90_000 + size) for call, size in pairs)
    return msgspec.structs.replace(built, calls=calls)


def clearing() -> Session:
    """Two results of three, cleared before the fourth call, as a log of requests shows it."""
    calls = [ToolCallPart("read", {"path": f"{number}.py"}, f"call-{number}") for number in range(3)]
    results = [ToolResultPart("read", f"file {number} " + "some words " * 500, f"call-{number}") for number in range(3)]
    events = [Event(Role.USER, (TextPart(WORDS),))]
    for call, result in zip(calls, results, strict=True):
        events += [Event(Role.MODEL, (call,)), Event(Role.USER, (result,))]
    events.append(Event(Role.MODEL, (TextPart("Done."),)))
    first, second = (
        Rewritten(event, Event(Role.USER, (msgspec.structs.replace(result, content="[cleared]"),)), CHANGED)
        for event, result in ((2, results[0]), (4, results[1]))
    )
    edit = RecordedCompaction(
        at=6,
        evidence=Evidence.INFERRED,
        kind="edit",
        base=(Span(0, 2), first, Span(3, 4), second, Span(5, 6)),
    )
    counts = (1_000, 2_100, 3_200, 2_100)
    asked = tuple(ModelCall(2 * step + 1, 2 * step + 1, tokens) for step, tokens in enumerate(counts))
    return Session(tuple(events), asked, (edit,), window=WINDOW)


def cleared_after_a_cut() -> Session:
    """The same where the first result had been cut to half of it a call earlier."""
    session = clearing()
    (edit,) = session.compactions
    whole = "file 0 " + "some words " * 500
    half = ToolResultPart("read", whole[: len(whole) // 2], "call-0")
    cut = Rewritten(2, Event(Role.USER, (half,)), CHANGED)
    earlier = msgspec.structs.replace(edit, at=4, base=(Span(0, 2), cut, Span(3, 4)))
    return msgspec.structs.replace(session, compactions=(earlier, edit))


def reading_again() -> Session:
    """Four files that are read again after a compaction."""
    files = [f"file {number} " + "some words " * (300 + number) for number in range(4)]
    events, asked = [Event(Role.USER, (TextPart(WORDS),))], []
    for step, text in enumerate((*files, *files)):
        asked.append(ModelCall(len(events), len(events), 5_000 + 1_000 * (step % 4)))
        call = ToolCallPart("read", {"path": f"{step % 4}.py"}, f"call-{step}")
        events += [Event(Role.MODEL, (call,)), Event(Role.USER, (ToolResultPart("read", text, call.id),))]
    return Session(tuple(events), tuple(asked), (compaction(8),), window=WINDOW)


def calling_again(times: int = 12) -> Session:
    """One command that fails in the same words time after time, between others."""
    events, asked = [Event(Role.USER, (TextPart(WORDS),))], []
    for step in range(times + 4):
        asked.append(ModelCall(len(events), len(events), 5_000 + 100 * step))
        is_other = step < 2 or step >= times + 2
        call = ToolCallPart("shell", {"command": f"ls {'x' * step}" if is_other else "make test"}, f"call-{step}")
        said = f"{step} files " * (step + 3) if is_other else "Error: the table users is missing"
        events += [Event(Role.MODEL, (call,)), Event(Role.USER, (ToolResultPart("shell", said, call.id),))]
    return Session(tuple(events), tuple(asked), window=WINDOW)


def with_rules(built: Session) -> Session:
    """The same with two rules behind the request."""
    text = f"{WORDS}. You must never touch the file legacy.py. Always run the linter before a commit."
    first = msgspec.structs.replace(built.events[0], parts=(TextPart(text),))
    return msgspec.structs.replace(built, events=(first, *built.events[1:]))


def with_todos(summary: str = f"The task: {WORDS}.", *, again: bool = False) -> Session:
    """Work with a list of three todos, two of them open, and perhaps another list behind the compaction."""
    built = exchange(14, tokens=_falling_at(8), compactions=(compaction(8, summary),))
    listed = [("Write the parser", "completed"), ("Write the rollback migration", "pending"), ("Update the manual", "")]
    todos = [{"content": words, "status": status} for words, status in listed]
    events = [*built.events]
    events[3] = Event(Role.MODEL, (ToolCallPart("TodoWrite", {"todos": todos}, "t1"),))
    if again:
        events[11] = Event(Role.MODEL, (ToolCallPart("TodoWrite", {"todos": [{"content": "Tidy up"}]}, "t2"),))
    return msgspec.structs.replace(built, events=tuple(events))


def continued() -> Session:
    """Work that the user says to go on with, and a compaction behind that."""
    built = exchange(14, tokens=_falling_at(9), compactions=(compaction(9),))
    events = [*built.events]
    events[6] = Event(Role.USER, (TextPart("OK, continue"),))
    return msgspec.structs.replace(built, events=tuple(events))


def with_earlier_rules() -> Session:
    """Two turns of their own rules, then work whose first compaction keeps one of the three and the second none."""
    said = (
        "Use four spaces, never tabs.",
        "Thanks. Only touch files below the folder billing. You must squash commits.",
    )
    begun = [event for text in said for event in (Event(Role.USER, (TextPart(text),)), _of_model("Understood."))]
    kept = compaction(5, "The user must have commits squashed; work on the parser began.")
    built = exchange(14, tokens=lambda turn: None, compactions=(kept, compaction(10, "Half of the parser is done.")))
    calls = [ModelCall(at, at, 4_000 + 500 * at) for at in (1, 3)]
    counts = _falling_at(5, 10)
    calls += [ModelCall(call.at + 4, call.at + 4, counts(turn)) for turn, call in enumerate(built.calls)]
    moved = tuple(msgspec.structs.replace(item, at=item.at + 4) for item in built.compactions)
    return msgspec.structs.replace(built, events=(*begun, *built.events), calls=tuple(calls), compactions=moved)


def _of_model(text: str) -> Event:
    return Event(Role.MODEL, (TextPart(text),))


def calling_in_turn(rounds: int = 10, *, progress: bool = False) -> Session:
    """A test, an edit and a file, time after time; with `progress` the test finds something else each time."""
    said = {"make test": "Error: the table users is missing", "edit": "", "read": "CREATE TABLE user (id, name)"}
    events, asked = [Event(Role.USER, (TextPart(WORDS),))], []
    for step in range(3 * rounds):
        asked.append(ModelCall(len(events), len(events), 5_000 + 100 * step))
        command, text = list(said.items())[step % 3]
        text += f" at line {step}" * (progress and command == "make test")
        call = ToolCallPart("shell", {"command": command}, f"call-{step}")
        events += [Event(Role.MODEL, (call,)), Event(Role.USER, (ToolResultPart("shell", text, call.id),))]
    return Session(tuple(events), tuple(asked), window=WINDOW)


def _falling_at(*places: int, start: int = 60_000, low: int = 8_000) -> Callable[[int], int]:
    """Counts that grow by 1,000 and fall to `low` at the given calls."""

    def tokens(turn: int) -> int:
        since = [turn - place for place in places if place <= turn]
        return low + 1_000 * min(since) if since else start + 1_000 * turn

    return tokens


def recordings() -> Iterator[tuple[str, Session]]:
    """Sessions, by what is wrong with them."""
    yield "healthy", exchange(8, tokens=growing())
    yield "contradicted", exchange(8, tokens=growing(99_000))
    several = ((0, 120_000), (6, 100_000))
    yield "a window that changes", exchange(8, tokens=_falling_at(5, start=105_000), windows=several)
    yield "more cached than sent", _cached(exchange(8, tokens=growing()), 90_000)
    yield "results that a client clears", clearing()
    yield "results that a client cuts, then clears", cleared_after_a_cut()
    yield "results that come again", reading_again()
    yield "one call in a row", calling_again()
    yield "calls in turn", calling_in_turn()
    yield "refused", exchange(8, tokens=growing(85_000), refused=(5, 9, 9))
    by_hand, stated = Sourced(200_000, Provenance.USER), (Refusal(5, 110_000, 100_000),)
    yield (
        "refused below a window set by hand",
        exchange(8, tokens=growing(50_000), window=by_hand, refused=(5,), refusals=stated),
    )
    recovered = (compaction(4),)
    behind = (compaction(4, refused_behind=1),)
    yield "refused behind a compaction", exchange(8, tokens=_falling_at(4), compactions=behind, refused=(5,))
    yield "refused and compacted", exchange(8, tokens=_falling_at(4), compactions=recovered, refused=(5,))
    totals = {"prompt_tokens_total": 1_234_567, "total_calls": 9}
    yield "contradicted on average", exchange(8, tokens=lambda turn: None, **totals)
    yield "only totals", exchange(8, tokens=lambda turn: None, window=Sourced(200_000, Provenance.RECORDER), **totals)
    yield "only a sum", exchange(8, tokens=lambda turn: None, prompt_tokens_total=1_234_567)
    left = LeftBranches(12, compactions=2, refused=1, largest=99_000)
    yield "branches that were left", exchange(8, tokens=growing(), left=left)
    yield "near", exchange(8, tokens=growing(90_500))
    yield "assumed", exchange(8, tokens=growing(118_000), window=None, model="nameless")
    yield "counted in characters", in_characters()
    yield "not smaller", exchange(8, tokens=lambda turn: 30_000, compactions=(compaction(5, tokens_before=30_000),))
    yield (
        "doubted",
        exchange(
            8,
            tokens=_falling_at(5, start=190_000),
            compactions=(compaction(5, tokens_before=195_000),),
            window=None,
            model="claude-opus-4-6",
            format="pi",
        ),
    )
    yield "not counted", exchange(60, tokens=lambda turn: None, window=Sourced(20_000, Provenance.RECORDER))
    modelled = Facts.of(exchange(60, tokens=lambda turn: None)).requests.tokens
    filled = Sourced(int(modelled[28]), Provenance.RECORDER)  # the next request is the first over it
    yield (
        "late",
        exchange(60, tokens=lambda turn: None, compactions=(compaction(30),), window=filled, answered=False),
    )
    refused = compaction(20, tokens_before=100_400)
    yield "counted over", exchange(40, tokens=_falling_at(20, start=79_000), compactions=(refused,))
    yield (
        "never paid",
        priced(
            exchange(
                14,
                tokens=_falling_at(5, 7, start=40_000, low=36_000),
                compactions=(compaction(5), compaction(7)),
            )
        ),
    )
    for name, left in (("nothing", (Inserted(0),)), ("the beginning", (Span(0, 3), Inserted(0)))):
        first, second = compaction(5, base=left), compaction(5, "Better said.")
        built = exchange(14, tokens=_falling_at(5, start=40_000, low=36_000), compactions=(first, second))
        yield f"never paid, and another before the call that left {name}", priced(built)
    small = {5: 600, 6: 500}  # fewer tokens than a provider's cache keeps
    yield (
        "never paid, twice in a row",
        priced(
            exchange(
                14,
                tokens=lambda turn: small.get(turn, 40_000 + 1_000 * turn if turn < 5 else 400 + 40 * turn),
                compactions=(compaction(5), compaction(6)),
            )
        ),
    )
    roomy = exchange(10, tokens=_falling_at(5, start=40_000), compactions=(compaction(5),))
    yield "needless, with room for an answer", _answered(roomy, 2_000)
    yield "needed for an answer", _answered(roomy, 57_000)
    yield "needless", exchange(10, tokens=_falling_at(5, start=40_000), compactions=(compaction(5),))
    yield (
        "trigger unknown",
        exchange(10, tokens=_falling_at(5, start=40_000), compactions=(compaction(5, trigger=""),)),
    )
    yield (
        "needed",
        exchange(40, tokens=_falling_at(20, start=79_000), compactions=(compaction(20),)),
    )
    yield (
        "manual between",
        exchange(
            40,
            tokens=_falling_at(10, 20, 30, start=60_000),
            compactions=(compaction(10), compaction(20, trigger="manual"), compaction(30)),
        ),
    )
    yield (
        "request quoted",
        exchange(
            20,
            tokens=_falling_at(5, 12),
            compactions=(compaction(5, f"The user said: {WORDS}."), compaction(12)),
        ),
    )
    yield (
        "rule lost",
        with_rules(exchange(20, tokens=_falling_at(5), compactions=(compaction(5, f"The task: {WORDS}."),))),
    )
    yield (
        "part of a request lost",
        exchange(
            20,
            tokens=_falling_at(5),
            compactions=(compaction(5, "The task: fix the flaky test of the lexer."),),
            words="Fix the flaky test of the lexer. Update the manual of the importer. Rename the column tenant.",
        ),
    )
    yield "continued request lost", continued()
    yield "rules of an earlier turn lost", with_earlier_rules()
    yield "todos lost", with_todos()
    yield "todos lost before another list", with_todos(again=True)
    yield "grown", exchange(10, tokens=growing(50_000, 2_000), compactions=(compaction(5, tokens_before=50_500),))
    twice = tuple(compaction(turn, tokens_before=50_500 + turn) for turn in (5, 8))
    yield "grown twice", exchange(10, tokens=growing(50_000, 2_000), compactions=twice)
    yield (
        "not kept",
        exchange(
            12,
            tokens=lambda turn: 9_000 if turn == 5 else 50_000 + 1_000 * turn,
            compactions=(compaction(5),),
        ),
    )
    yield (
        "loop",
        exchange(10, tokens=growing(50_000, 10), compactions=tuple(compaction(turn) for turn in (4, 5, 6, 7))),
    )
    yield (
        "over by a token",
        exchange(
            10,
            tokens=lambda turn: None if turn == 9 else 9_990 + turn,
            window=Sourced(10_000, Provenance.USER),
            size=14,
        ),
    )
    yield "slides", exchange(10, tokens=growing(50_000, 10), compactions=sliding())
    emptying = exchange(
        14, tokens=growing(50_000, 10), compactions=sliding(kept=lambda turn: max(1, 9 - 4 * (turn - 4)))
    )
    yield "drops half and half again", emptying
    yield (
        "thrash",
        exchange(14, tokens=growing(50_000, 10), compactions=tuple(compaction(turn) for turn in (3, 6, 9))),
    )
    sealed = Event(Role.USER, (ReasoningPart(opaque_bytes=900),), meta=True)
    yield (
        "sealed",
        exchange(10, tokens=_falling_at(5), compactions=(compaction(5, kind="opaque", messages=(sealed,)),)),
    )
    yield "fallback", exchange(10, tokens=_falling_at(5), compactions=(compaction(5, kind="fallback"),))
    yield "empty", exchange(10, tokens=_falling_at(5), compactions=(compaction(5, ""),))
    yield "truncated", exchange(10, tokens=_falling_at(5, start=60_000, low=20_000))
    yield "truncated twice", exchange(12, tokens=_falling_at(5, 9, start=60_000, low=20_000))
    yield "repeated", exchange(10, tokens=lambda turn: 9_000 + 2_000 * (turn // 2))
    yield "partly counted", exchange(10, tokens=lambda turn: None if turn % 3 else 9_000 + 1_000 * turn)
    yield "at the end", exchange(6, tokens=growing(), compactions=(compaction(6),))
    yield (
        "kept tail",
        exchange(10, tokens=_falling_at(6), compactions=(compaction(6, base=(Inserted(0), Span(5, 7))),)),
    )


def _two_turns_of_exec() -> Session:
    """Of Codex, each turn a process of its own; the second begins with more than the first."""
    session = transcript("codex", "0.171.0", prompts=(20_000, 80_000, 135_000, 140_000), tokens_before=None)
    events = (*session.events[:2], user("and now?"), *session.events[3:])
    settings, window = (AgentSetting("process_per_turn", 1),), Sourced(258_400, Provenance.RECORDER)
    return msgspec.structs.replace(session, events=events, compactions=(), settings=settings, window=window)


def ruled() -> Iterator[tuple[str, Claims]]:
    """Recordings of Claude Code, Codex and Cline's SDK that do not fit their rule, or what a person typed of it."""
    late = transcript(prompts=(20_000, 160_000, 120_000, 30_000))
    yield "late and early", of_recording(late)
    yield "another threshold", of_recording(transcript(version="2.1.21"))
    yield "typed and never acts", of_recording(transcript(), max_output_tokens="8192")
    yield "a share that never acts", of_recording(transcript(), autocompact_pct="50")
    quiet = msgspec.structs.replace(transcript(prompts=(20_000, 150_000, 156_000, 157_000)), compactions=())
    yield "never compacted", of_recording(quiet)
    whole = {"pending_tokens": 1_100}  # a version that counts whole items, as their JSON is
    codex = transcript("codex", "0.99.0", prompts=(20_000, 60_000, 90_000, 30_000), **whole)
    waiting = tuple(msgspec.structs.replace(call, pending_tokens=1_050) for call in codex.calls)
    codex = msgspec.structs.replace(codex, calls=waiting, window=Sourced(258_400, Provenance.RECORDER))
    yield "items of Codex", of_recording(codex)
    grown = transcript("codex", "0.171.0", prompts=(20_000, 62_000, 95_000, 30_000), tokens_before=None)
    grown = msgspec.structs.replace(grown, window=Sourced(258_400, Provenance.RECORDER))
    yield "a limit of Codex that never acts", of_recording(grown, model_auto_compact_token_limit="40000")
    for limit in ("40000", "120000"):
        scope = {"model_auto_compact_token_limit": limit, "model_auto_compact_token_limit_scope": "body_after_prefix"}
        yield f"{limit} added in Codex", of_recording(grown, **scope)
        yield f"{limit} added in a turn of Codex exec", of_recording(_two_turns_of_exec(), **scope)
    yield "written down", of_recording(transcript(version="2.1.21", tokens_before=156_000))
    yield "written down behind an edit", of_recording(_behind_an_edit())
    for prompts, before in (((20_000, 60_000, 150_000, 30_000), 90_000), ((20_000, 170_000, 175_000, 30_000), None)):
        sdk = transcript("cline", "3.0.65", "", prompts=prompts, tokens_before=before)
        sdk = msgspec.structs.replace(sdk, settings=(AgentSetting("is_of_sdk", 1),))
        yield f"the SDK of Cline, {before}", of_recording(sdk)
    passed = transcript("cline", "3.0.65", "", prompts=(20_000, 170_000, 175_000, 176_000))
    yield (
        "a check of the SDK",
        of_recording(msgspec.structs.replace(passed, compactions=(), settings=(AgentSetting("is_of_sdk", 1),))),
    )


def _behind_an_edit() -> Session:
    """The request before an edit says nothing of what a compaction behind it counted."""
    said = Event(Role.USER, (TextPart("what stays"),), meta=True)
    edit = RecordedCompaction(2, Evidence.DECLARED, "edit", (Inserted(0),), (said,), trigger="auto")
    session = transcript(version="2.1.14")
    return msgspec.structs.replace(
        session,
        events=session.events[:2],
        calls=(ModelCall(1, prompt_tokens=1_500),),
        compactions=(edit, msgspec.structs.replace(edit, kind="summary", tokens_before=150_000)),
    )


def replays() -> Iterator[tuple[str, Claims]]:
    """Replays of sessions and scenarios in which a policy goes wrong in each way that findings know."""
    busy = exchange(60, tokens=growing(4_000, 900), window=Sourced(64_000, Provenance.RECORDER))
    for policy, settings in (
        ("contextguard", {}),
        ("contextguard", {"profile": "tail"}),
        ("contextguard", {"name_request": True}),
        ("contextguard", {"buffer": "0"}),
        ("contextguard-sliding", {"max_turns": 5}),
        ("none", {}),
    ):
        for window in (8_000, 30_000, 64_000):
            yield f"{policy} {settings} {window}", of_replay(busy, policy, window, **settings)
    yield "no summaries", of_replay(busy, "contextguard", 30_000, NoSummaries())
    yield "empty summaries", of_replay(busy, "contextguard", 30_000, FixedSummaries(0))
    yield "huge summaries", of_replay(busy, "contextguard", 30_000, FixedSummaries(200_000))
    yield "growing request", of_replay(busy, "contextguard-sliding", 30_000, FixedSummaries(30_000), max_turns=3)
    for name, scenario in SCENARIOS.items():
        for simulation in scenario.simulations:
            session = play(simulation).session
            for policy in ("contextguard", "contextguard-sliding"):
                yield (
                    f"{name} {policy}",
                    of_replay(session, policy, simulation.window, FixedSummaries(simulation.summary_bytes)),
                )

    cut = (compaction(10),)
    refused = exchange(20, tokens=_falling_at(10, start=60_000), compactions=cut, answered=False, refused=(11,))
    yield "as large as a refused request", of_replay(refused, "none", 100_000)
    yield "counted in characters", of_replay(in_characters(), "none", 100_000)
    for policy in ("autogen-buffered", "cline", "langchain-trim-messages", "pydantic-ai-sliding-window"):
        yield f"without summaries: {policy}", of_replay(busy, policy, 30_000)
    yield "pictures", of_replay(_pictures(), "contextguard", 200_000)
    unknown = msgspec.structs.replace(_pictures(), window=None)
    yield "pictures under an assumed window", of_replay(unknown, "contextguard", 128_000)
    large_system = exchange(20, tokens=growing(30_000, 900), system=(TextPart("s" * 90_000),))
    yield "a system prompt over the window", of_replay(large_system, "contextguard", 20_000, profile="fixed")
    yield "an empty summary", _emptied(busy)
    for policy in ("claude-code", "autogen-buffered"):
        for name, built in (("rules", with_rules(busy)), ("rules of an earlier turn", with_earlier_rules())):
            yield f"{name} lost: {policy}", of_gate(built, policy, 8_000)


def _pictures() -> Session:
    """A request and twelve pictures, which a provider counts by their size on screen and not by their bytes."""
    events = [Event(Role.USER, (TextPart(WORDS),))]
    calls = []
    for turn in range(12):
        events.append(Event(Role.USER, (MediaPart("image/png", 200_000),)))
        calls.append(ModelCall(at=len(events), response=len(events), prompt_tokens=3_000 + 1_500 * turn))
        events.append(Event(Role.MODEL, (TextPart("It shows a cat."),)))
    return Session(tuple(events), tuple(calls), window=Sourced(200_000, Provenance.RECORDER))


def _emptied(session: Session) -> Claims:
    """A replay whose first summary is empty; the policies here would have replaced it with a mechanical one."""
    facts = Facts.of(session)
    trace = replay(facts.ledger, get_policy("contextguard"), window=30_000, usage=facts.usage)
    first, *others = trace.compactions
    last = msgspec.structs.replace(first.passes[-1], summary_bytes=0)
    emptied = msgspec.structs.replace(first, passes=(*first.passes[:-1], last))
    trace = replace(trace, compactions=(emptied, *others))
    findings = replayed_findings(facts, trace)
    return Claims(session, facts.window, findings, replayed_verdict(facts, trace, findings), trace)


def lies(finding: Finding) -> Iterator[tuple[str, Finding]]:
    """The same claim with one thing in it made false."""
    for name, value in finding.numbers.items():
        if isinstance(value, bool | str):
            continue
        if isinstance(value, list):
            yield name, _with(finding, name, [*value, 10_000])
        else:
            yield name, _with(finding, name, value + 1)
    yield "count", msgspec.structs.replace(finding, count=finding.count + 1)
    yield "sentence", msgspec.structs.replace(finding, sentence=f"{finding.sentence} It happened 987,654 times.")
    yield "kind", msgspec.structs.replace(finding, kind="unheard_of")


def exchanged(sides: Iterable[Claims]) -> Iterator[tuple[str, bool]]:
    """The sentences with two of their different numbers exchanged, outside of quotations, and whether each is believed;
    of sentences that differ in numbers alone, the first."""
    known: set[str] = set()
    for claims in sides:
        story = Story(claims.session, claims.window)
        if claims.trace is not None:
            story = ReplayStory(claims.session, claims.window, claims.trace)
        tests: list[tuple[Finding | Verdict, Callable[..., None]]] = [(one, check_sentence) for one in claims.findings]
        tests += [(claims.verdict, check_verdict_sentence)] if claims.session.calls else []
        for claim, test in tests:
            words = _NUMBER.sub("", claim.sentence)
            for sentence in () if words in known else _exchanges(claim.sentence):
                yield sentence, _passes(test, story, msgspec.structs.replace(claim, sentence=sentence))
            known.add(words)


def _exchanges(sentence: str) -> Iterator[str]:
    open_, close = sentence.find('"'), sentence.rfind('"')
    numbers = [item for item in _NUMBER.finditer(sentence) if not open_ < item.start() < close]
    for one, other in combinations(numbers, 2):
        if one[0] != other[0]:
            between = sentence[one.end() : other.start()]
            yield f"{sentence[: one.start()]}{other[0]}{between}{one[0]}{sentence[other.end() :]}"


def _passes(test: Callable[..., None], story: Story, claim: Finding | Verdict) -> bool:
    try:
        test(story, claim)
    except Wrong:
        return False
    return True


def _with(finding: Finding, name: str, value: Any) -> Finding:
    return msgspec.structs.replace(finding, numbers={**finding.numbers, name: value})
