"""What a recording proves about its context window: answered prompts and automatic compactions against a stated value.

A prompt that was answered fitted the window. An agent whose rule derives its threshold from the window, and that
compacts at less than half of it each time, has another window or a threshold set by hand.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from enum import StrEnum
from operator import itemgetter

import msgspec

from guard_core.defaults import LARGEST_OFFERED
from guard_core.sessions import (
    GUARDS_WINDOW,
    RECORDERS_WINDOW,
    Provenance,
    Session,
    Sourced,
)
from guard_core.triggers import AUTOMATIC, has_telling_size, is_automatic, is_forced, trigger_of
from guard_core.windows import models
from guard_core.windows.agent_windows import taken_by_agent

DOUBTED_BELOW = 0.5  # ours: no agent's default rule compacts below half of its window
# Agents whose own rule derives the threshold from the window. Frameworks (ADK, Inspect, LangChain, …) are given
# thresholds in tokens: what they compact at says nothing of the window.
THRESHOLD_FROM_WINDOW = frozenset(
    {"claude-code", "cline", "codex", "copilot-cli", "crush", "gemini-cli", "hermes", "opencode", "pi"}
)
_TOO_LARGE = f"the file says so, and no model that is offered has more than {LARGEST_OFFERED:,}"
NOT_KNOWN = -1  # the window of a model whose answered prompts disprove the one that was known
CODEX_USABLE = 0.95  # Codex records this share of the model's window as the window


class Status(StrEnum):
    """How far a window can be relied on."""

    KNOWN = "known"  # from the file or the user, and nothing contradicts it
    TABLE = "table"  # by the model's name, and nothing contradicts it
    ASSUMED = "assumed"  # nothing says it, or too little (`models.is_assumed`)
    DOUBTED = "doubted"  # by the model's name or assumed, but the agent compacts far below it
    CONTRADICTED = "contradicted"  # a larger prompt was answered


class WindowJudgement(msgspec.Struct, frozen=True):
    """A window in tokens, where it comes from, and what the recording says of it.

    `at_least` is the largest answered prompt in tokens (their average where only the total is recorded), 0 where none
    was counted. For people: `note` says what the
    status rests on, `origin` where the value is from.
    """

    value: int
    source: Provenance
    status: Status
    at_least: int
    note: str
    origin: str = ""

    @property
    def sourced(self) -> Sourced:
        """The window without the judgement."""
        return Sourced(self.value, self.source, self.origin)

    @property
    def words(self) -> str:
        """Where it comes from and how far it can be relied on, for a terminal."""
        return f"{self.source_words}: {self.note or 'no note'}"

    @property
    def source_words(self) -> str:
        """The same without the note; a window that is assumed is said to be so once."""
        return ", ".join(dict.fromkeys([str(self.source), *([] if self.is_reliable else [str(self.status)])]))

    @property
    def is_unsure(self) -> bool:
        """Does what rests on it have to say so."""
        return self.status in (Status.ASSUMED, Status.DOUBTED)

    @property
    def is_disproved(self) -> bool:
        """Was a larger prompt answered, so that no recorded request is held against it."""
        return self.status is Status.CONTRADICTED

    @property
    def judges_replays(self) -> bool:
        """Are the requests of a replay held against it: a person may ask for a window that is not the real one."""
        return not self.is_disproved or is_set_by_hand(self.sourced)

    @property
    def is_reliable(self) -> bool:
        """Does nothing speak against it, so that no question is needed."""
        return self.status in (Status.KNOWN, Status.TABLE)


def judge(
    window: Sourced,
    prompts: Iterable[int],
    triggers: Iterable[int],
    *,
    agent: str = "",
    model: str = "",
    said_automatic: bool = True,
    all_forced: bool = False,
    averaged_over: int = 0,
) -> WindowJudgement:
    """A window against the evidence.

    `prompts`: the provider's counts of answered requests, in tokens; those not above 0 are left out. `triggers`: the
    counts at which the agent compacted by itself. `agent`: the recording's format. `model`: the name that a window of
    the table was looked up by; where its prompts are larger and exactly one documented variant holds them, that is it.
    `said_automatic`: does the recording say of all these compactions that they were automatic. `all_forced`: did a
    refused request force each of them. `averaged_over`: the one prompt given is the average of so many calls, so the
    largest had at least as many tokens; 0 where each is the count of a single request.
    """
    at_least = max((int(count) for count in prompts if count > 0), default=0)
    is_codex = agent == "codex" and window.source is Provenance.RECORDER
    if at_least > (window.value / CODEX_USABLE if is_codex else window.value):
        variants = models.documented_windows(model, at_least) if _is_looked_up(window) else []
        if len(variants) != 1:
            return _judged(window, Status.CONTRADICTED, at_least, _contradiction(window, at_least, averaged_over))
        size = _average(at_least, averaged_over) if averaged_over else f"up to {at_least:,} tokens"
        note = f"prompts {size} were answered, above {window.value:,} ({window.note})"
        window = Sourced(variants[0], Provenance.PROMPTS, note)
    fired = sorted(int(count) for count in triggers if count > 0)
    is_derived = agent in THRESHOLD_FROM_WINDOW and (_is_looked_up(window) or window.source is Provenance.ASSUMED)
    if is_derived and fired and fired[-1] < DOUBTED_BELOW * window.value:
        return _judged(window, Status.DOUBTED, at_least, _doubt(window, fired, said_automatic, all_forced))
    status = _undisputed(window, model)
    too_large = status is Status.ASSUMED and window.source is Provenance.RECORDER
    return _judged(window, status, at_least, _TOO_LARGE if too_large else window.note)


def undoubted(judged: WindowJudgement, model: str) -> WindowJudgement:
    """A doubted window of a model, once it is known why its agent compacted early."""
    window = judged.sourced
    return _judged(window, _undisputed(window, model), judged.at_least, window.note)


def _undisputed(window: Sourced, model: str) -> Status:
    """The status of a window that nothing speaks against."""
    if models.is_assumed(window, model):
        return Status.ASSUMED
    return Status.TABLE if _is_looked_up(window) else Status.KNOWN


def _judged(window: Sourced, status: Status, at_least: int, note: str) -> WindowJudgement:
    return WindowJudgement(window.value, window.source, status, at_least, note, window.note)


def judge_session(
    session: Session, window: Sourced | None = None, answers: dict[str, models.ModelAnswers] | None = None
) -> WindowJudgement:
    """The window of a session, or another one, against what the session recorded. `answers`: what `models.answers_of`
    says of it, where that is known.

    A simulated session has no provider whose answers would prove anything, and another model's answer proves nothing of
    this window.
    """
    answers = models.answers_of(session) if answers is None else answers
    model = models.main_model(session, answers)
    stated = window or models.window_of(session, model)
    if session.usage_ratio is not None:
        return _judged(stated, Status.KNOWN, 0, stated.note)
    if session.windows:
        others = other_windows(session, answers)
        pairs = zip(session.calls, others, strict=True)
        prompts, averaged_over = [call.prompt_tokens or 0 for call, other in pairs if not other], 0
    else:
        by_model = windows_by_model(session, answers)
        prompts, averaged_over = [answer.largest for name, answer in answers.items() if not by_model.get(name)], 0
    is_counted = any(call.prompt_tokens for call in session.calls)
    if session.mean_prompt_tokens and not is_counted and not session.windows:
        prompts, averaged_over = [session.mean_prompt_tokens], session.total_calls or 0
    return judge(
        taken_by_agent(session.agent_format, model, stated, max(prompts, default=0), session.version),
        prompts,
        automatic_triggers(session, answers),
        agent=session.agent_format,
        model=model,
        said_automatic=all(trigger_of(item) == AUTOMATIC for item in session.compactions if is_automatic(item)),
        all_forced=are_all_forced(session, answers),
        averaged_over=averaged_over,
    )


def other_windows(session: Session, answers: dict[str, models.ModelAnswers] | None = None) -> list[int]:
    """For every call, the window in tokens of its model where that is another than the session's; 0 for all others.

    Where the file states several, that is what it states. Else a model counts as another if its calls name it, the
    table knows it, and its window differs from that of the model which answered most calls. Where its own answered
    prompts are larger than that window, the one documented variant that holds them counts, and where there is none the
    window is NOT_KNOWN; so is that of a model which the table does not know, and whose prompts neither the main model's
    window nor a stated one of the session would hold.
    """
    if session.windows:
        main = session.window.value if session.window is not None else 0
        return [0 if window == main else window for window in stated_windows(session)]
    windows = windows_by_model(session, models.answers_of(session) if answers is None else answers)
    return [windows.get(call.model, 0) for call in session.calls] if windows else [0] * len(session.calls)


def stated_windows(session: Session) -> list[int]:
    """For every call, the window in tokens that the file states for it; none where the file states one at most."""
    if not session.windows:
        return []
    starts = [at for at, _ in session.windows]
    return [session.windows[max(0, bisect_right(starts, call.at) - 1)][1] for call in session.calls]


def windows_by_model(session: Session, answers: dict[str, models.ModelAnswers]) -> dict[str, int]:
    """The same by model, for those that have another window."""
    main_model = models.main_model(session, answers)
    main = _looked_up(session, main_model, answers)
    stated = session.window if session.window is not None and session.window.source is not Provenance.ASSUMED else None
    known = max((window.value for window in (main, stated) if window is not None), default=0)
    windows: dict[str, int] = {}
    for name in answers.keys() - {main_model, ""}:
        own, largest = _looked_up(session, name, answers), answers[name].largest
        if own is None and main is not None and largest > known:
            windows[name] = NOT_KNOWN  # what holds them is unknown, and says nothing of the main model's
        if own is None or own.source is Provenance.ASSUMED or (main is not None and own.value == main.value):
            continue
        variants = models.documented_windows(name, largest)
        windows[name] = own.value if largest <= own.value else variants[0] if len(variants) == 1 else NOT_KNOWN
    return windows


def _looked_up(session: Session, model: str, answers: dict[str, models.ModelAnswers]) -> Sourced | None:
    """The window of a model in tokens as this session's agent takes it; None: the table does not know it."""
    window, largest = models.context_window(model), answers[model].largest if model in answers else 0
    return window and taken_by_agent(session.agent_format, model, window, largest, session.version)


def automatic_triggers(
    session: Session, answers: dict[str, models.ModelAnswers] | None = None, *, unsaid: bool = False
) -> list[int]:
    """The tokens at which each automatic compaction fired that came for its size: the recorder's figure, else the last
    prompt before it. Not those before or behind a call of a model that has another window than the session: its
    threshold may follow from that.
    `unsaid`: only of those that are taken as automatic because the file does not say what triggered them."""
    automatic, counts = [session.compactions[place] for place in _of_main_model(session, answers)], []
    is_complete = all(item.tokens_before for item in automatic)
    reported = [] if is_complete else [(call.at, call.prompt_tokens) for call in session.calls if call.prompt_tokens]
    for compaction in automatic:
        if unsaid and trigger_of(compaction) == AUTOMATIC:
            continue
        place = bisect_left(reported, compaction.at, key=itemgetter(0))
        counts.append(compaction.tokens_before or (reported[place - 1][1] if place else 0))
    return [count for count in counts if count > 0]


def are_all_forced(session: Session, answers: dict[str, models.ModelAnswers] | None = None) -> bool:
    """Did a refused request force each of the compactions of `automatic_triggers`, so that no threshold did."""
    places = _of_main_model(session, answers)
    ats = [call.at for call in session.calls] if places else []
    for place in places:
        step = bisect_left(ats, session.compactions[place].at)
        if not is_forced(session, place, ats[step - 1] if step else 0):
            return False
    return True


def _of_main_model(session: Session, answers: dict[str, models.ModelAnswers] | None = None) -> list[int]:
    """The places of the automatic compactions that came for their size, with no call of a model with another window
    beside them."""
    compactions = session.compactions
    automatic = [place for place, item in enumerate(compactions) if has_telling_size(item)]
    answers = models.answers_of(session) if automatic and answers is None else answers
    others = windows_by_model(session, answers) if automatic and answers else {}
    if not any(others.values()):
        return automatic
    ats, calls = [call.at for call in session.calls], session.calls
    steps = [bisect_left(ats, compactions[place].at) for place in automatic]
    beside = [{call.model for call in calls[max(0, step - 1) : step + 1]} for step in steps]
    return [place for place, models_ in zip(automatic, beside, strict=True) if not any(map(others.get, models_))]


def fired_words(session: Session, low: int, high: int) -> str:
    """Where automatic compactions fired, between two of these counts: at what the recorder wrote down, else after the
    last prompts, which agents that count answers and results, too, did not compare alone."""
    between = f"{high:,}" if low == high else f"{low:,} to {high:,}"
    if any(session.compactions[place].tokens_before for place in _of_main_model(session)):
        return f"at {between} tokens"
    return f"after {'a prompt' if low == high else 'prompts'} of {between} tokens"


def is_set_by_hand(window: Sourced) -> bool:
    """Did a person set the window for a recording, and not the program that wrote it."""
    return window.source is Provenance.USER and window.note not in (GUARDS_WINDOW, RECORDERS_WINDOW)


def shown_source(window: Sourced) -> Provenance:
    """The source of a window for people: one that a program was given, and recorded, is not the user's."""
    is_programs = window.source is Provenance.USER and not is_set_by_hand(window)
    return Provenance.RECORDER if is_programs else window.source


def _is_looked_up(window: Sourced) -> bool:
    return window.source in (Provenance.MODEL_TABLE, Provenance.PROMPTS)


def _average(at_least: int, calls: int) -> str:
    return f"of on average {at_least:,} tokens over {calls:,} call{'' if calls == 1 else 's'}"


def _contradiction(window: Sourced, at_least: int, averaged_over: int) -> str:
    words = {
        Provenance.MODEL_TABLE: "the model table's",
        Provenance.ASSUMED: "the assumed",
    }
    whose = "the window set here," if is_set_by_hand(window) else words.get(window.source, "the stated")
    if averaged_over:
        answered = f"prompts {_average(at_least, averaged_over)} were answered"
    else:
        answered = f"a prompt of {at_least:,} tokens was answered"
    return f"{answered}, above {whose} {window.value:,}"


def _doubt(window: Sourced, fired: list[int], said_automatic: bool, all_forced: bool) -> str:
    name = "automatic compaction" if said_automatic else "compaction"
    subject = {1: f"the {name}", 2: f"both {name}s"}.get(len(fired), f"all {len(fired):,} {name}s")
    low, high = f"{fired[0]:,}", f"{fired[-1]:,}"
    when = f"{subject} took place at {high if low == high else f'{low} to {high}'} tokens"
    when += f", below half of {window.value:,}"
    if all_forced:
        who, were = ("a refused request", "it was") if len(fired) == 1 else ("refused requests", "they were")
        return f"{when}, after {who}: the window is smaller, or {were} larger than counted"
    return f"{when}: the agent had a smaller window, or a threshold set by hand"
