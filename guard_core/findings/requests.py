"""Requests of the user that a compaction took out of the context while their turn continued."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from guard_core.counts import CountedCompaction
from guard_core.facts.instructions import is_universal, outlasts_its_turn
from guard_core.facts.texts import instructions_in
from guard_core.findings.claims import INFO, LISTED, WARNING, Finding
from guard_core.findings.facts import Case, Facts, Fired
from guard_core.findings.presence import (
    MOST_REQUESTS,
    RequestWords,
    RuleWords,
    TodoWords,
    has,
    holds,
    may_be_summarised,
    removes,
    shortened,
)
from guard_core.findings.sliding import is_made_anew
from guard_core.findings.words import at_step, compactions_words, counted, steps_words
from guard_core.ledger import Ints
from guard_core.quoting import normalised
from guard_core.summaries.continuation import repeats_request
from guard_core.view_sums import ViewSums
from guard_core.views import Span, View

RULE_CHARS = 120  # of a rule that a sentence shows


def lost_requests(case: Case) -> list[Finding]:
    """Requests that later calls of their turn no longer had."""
    if case.is_recorded:
        return [_recorded(case.facts, words) for words in case.facts.words or () if _removals(case.facts, words)]
    return _replayed(case)


def lost_rules(case: Case) -> list[Finding]:
    """Rules that a compaction took out of the context, while what was asked for beside them stayed."""
    if not case.is_recorded:
        return []
    with_rules = (item for item in case.facts.words or () if item.asks and item.rules and _removals(case.facts, item))
    return [item for words in with_rules if (item := _rules_lost(case.facts, words)) is not None]


def lost_parts(case: Case) -> list[Finding]:
    """Requests that ask for several things, of which a compaction took one out of the context, while another stayed."""
    if not case.is_recorded:
        return []
    several = (item for item in case.facts.words or () if item.parts and _removals(case.facts, item))
    return [item for words in several if (item := _part_lost(case.facts, words)) is not None]


def _part_lost(facts: Facts, words: RequestWords) -> Finding | None:
    """The parts of a request that later requests of its turn do not have, up to its end; None where there is none, or
    where the request is lost with them."""
    if _recorded(facts, words).severity == WARNING:
        return None
    lost = losses_in_turn(facts, words, words.parts)
    if not 0 < len(lost) < len(words.parts):
        return None
    step, part = min(((item.step, item.rule) for item in lost), key=itemgetter(0))
    numbers = _numbers_of_first(facts, words, "quote", part.text, step)
    cut = "" if numbers["is_whole"] else " …"
    more = "" if len(lost) == 1 else f" The same holds for {counted(len(lost) - 1, 'more sentence')} of that message."
    whole = "the task" if numbers["of_agent"] else "your request"
    sentence = (
        f'Of {whole} (message {words.message + 1:,}), "{numbers["quote"]}{cut}" left the context at '
        f"{at_step(step)} ({compactions_words([numbers['compaction']])}), while another part stayed: up to "
        f"{at_step(numbers['last'])}, the end of that turn, no request quotes it, and no summary "
        f"paraphrases {_all_of(part.text)}.{more}"
    )
    return Finding("part_lost", WARNING, step, sentence, numbers, (), (step,), len(lost))


def _rules_lost(facts: Facts, words: RequestWords) -> Finding | None:
    """The rules of a request that later requests of its turn do not have, up to its end; None where there is none, or
    where the request is lost with them."""
    if _recorded(facts, words).severity == WARNING:
        return None
    lost = losses_in_turn(facts, words, words.rules)
    if not lost:
        return None
    step, rule = min(((item.step, item.rule) for item in lost), key=itemgetter(0))
    numbers = _numbers_of_first(facts, words, "rule", rule.text, step)
    cut = "" if numbers["is_whole"] else " …"
    more = "" if len(lost) == 1 else f" The same holds for {counted(len(lost) - 1, 'more rule')} of that message."
    sentence = (
        f'{_rule_of(numbers)} "{numbers["rule"]}{cut}" (message {words.message + 1:,}) left the context at '
        f"{at_step(step)} ({compactions_words([numbers['compaction']])}), while the task stayed: up to "
        f"{at_step(numbers['last'])}, the end of that turn, no request quotes it, and no summary paraphrases "
        f"{_all_of(rule.text)}.{more}"
    )
    return Finding("rule_lost", WARNING, step, sentence, numbers, (), (step,), len(lost))


def _numbers_of_first(facts: Facts, words: RequestWords, name: str, text: str, step: int) -> dict[str, Any]:
    """The numbers of a claim about the sentence of a request that was lost first, at a step; `name`: of its words."""
    shown = shortened(text, RULE_CHARS)
    return {
        "message": words.message,
        "of_agent": words.of_agent,
        name: shown,
        "is_whole": shown == text,
        "compaction": [item for item in _removals(facts, words) if item.step <= step][-1].compaction,
        "last": int(np.flatnonzero(facts.tasks == words.message)[-1]),
    }


def _request_of(words: RequestWords, numbers: Mapping[str, Any]) -> str:
    """Whose request it is, with its first words."""
    whose = "The task" if numbers["of_agent"] else "Your request"
    return f'{whose} "{words.quote}{"" if words.is_whole else " …"}"'


def _rule_of(numbers: Mapping[str, Any]) -> str:
    """Whose rule it is."""
    return "The task's rule" if numbers["of_agent"] else "Your rule"


def _all_of(rule: str) -> str:
    """A rule that no summary paraphrases: of one with several instructions a summary may say some."""
    return "all of it" if len(instructions_in(rule)) > 1 else "it"


class RuleLoss(NamedTuple):
    """A rule or a part of a message that no request has from a step on, and the compaction of a later turn that took it
    away."""

    message: int
    rule: RuleWords
    step: int
    removal: Removal | None = None


def losses_in_turn(facts: Facts, words: RequestWords, said: Iterable[RuleWords]) -> list[RuleLoss]:
    """What a request says, its rules or its parts, that no request of its turn has from a compaction, or later, up to
    its end, but for the rules that the user had taken back by then."""
    in_turn = np.flatnonzero(facts.tasks == words.message)
    in_turn = in_turn[in_turn >= _removals(facts, words)[0].step]
    lost = []
    for rule in said:
        present, unread = presence(facts, rule)
        is_said = present | np.isin(facts.ledger.steps["epoch"], list(unread))
        known = in_turn[is_said[in_turn]]
        absent = in_turn[in_turn > known[-1]] if len(known) else in_turn
        if len(absent) and rule.holds_at(int(facts.ledger.steps["at"][absent[0]])):
            lost.append(RuleLoss(words.message, rule, int(absent[0])))
    return lost


def earlier_losses(facts: Facts) -> list[RuleLoss]:
    """The rules of turns that had ended which a later compaction took away for good, the most lasting first."""
    lost: dict[str, RuleLoss] = {}
    for words in facts.words or ():
        for rule in words.rules:
            removal = _lost_later(facts, words.message, rule) if outlasts_its_turn(rule.text) else None
            if removal is not None:
                lost.setdefault(normalised(rule.text), RuleLoss(words.message, rule, removal.step, removal))
    return sorted(lost.values(), key=lambda item: (not is_universal(item.rule.text), item.step))


def lost_earlier_rules(case: Case) -> list[Finding]:
    """Rules of a turn that had ended, which a later compaction took out of the context for good: one finding of all."""
    if not case.is_recorded:
        return []
    lost = earlier_losses(case.facts)
    if not lost or (removal := lost[0].removal) is None:
        return []
    message, rule, step, _ = lost[0]
    is_standing = is_universal(rule.text)
    numbers: dict[str, Any] = {
        "message": message,
        "of_agent": any(item.of_agent for item in case.facts.words or () if item.message == message),
        "rule": shortened(rule.text, RULE_CHARS),
        "is_whole": shortened(rule.text, RULE_CHARS) == rule.text,
        "compaction": removal.compaction,
        "is_universal": is_standing,
    }
    cut = "" if numbers["is_whole"] else " …"
    is_all = sum(not words.quote and not words.todos for words in case.facts.words or ()) < MOST_REQUESTS
    others = f"{'' if is_all else 'at least '}{counted(len(lost) - 1, 'more rule')}"
    more = "" if len(lost) == 1 else f" The same holds for {others} of earlier turns."
    scope = "" if is_standing else " It does not say whether it applies to later turns."
    sentence = (
        f'{_rule_of(numbers)} "{numbers["rule"]}{cut}" (message {message + 1:,}) left the context at {at_step(step)} '
        f"({compactions_words([removal.compaction])}), in a later turn: no request since quotes it, and no summary "
        f"paraphrases {_all_of(rule.text)}.{scope}{more}"
    )
    severity = WARNING if is_standing else INFO
    return [Finding("earlier_rule_lost", severity, step, sentence, numbers, (), (step,), len(lost))]


def _lost_later(facts: Facts, message: int, rule: RuleWords) -> Removal | None:
    """The compaction behind a message's turn since which no request has a rule of it; None where the last one may, or
    where the user had taken the rule back before."""
    steps = facts.ledger.steps
    present, unread = presence(facts, rule)
    said = np.flatnonzero(present | np.isin(steps["epoch"], list(unread)))
    first = int(said[-1]) + 1 if len(said) else 0
    if first >= len(present) or int(facts.tasks[first]) <= message:
        return None
    if not rule.holds_at(int(steps["at"][first])):
        return None
    by = [
        item
        for item in facts.recording.fired
        if item.step <= first and item.counted is not None and removes(facts.ledger, item.counted, message)
    ]
    return Removal(by[-1].index, first, by[-1].counted) if by and by[-1].counted is not None else None


class Absence(NamedTuple):
    """Where a request is neither held nor quoted: its first step in its own turn, the last step of that stretch, and
    whether that is the last of the recording."""

    first: int
    last: int
    is_final: bool


class Removal(NamedTuple):
    """A compaction, counted from 0, that took a message away, and the first call after it."""

    compaction: int
    step: int
    counted: CountedCompaction


def _recorded(facts: Facts, words: RequestWords) -> Finding:
    removals = _removals(facts, words)
    present, unread = presence(facts, words)
    sealed = [item.compaction for item in removals if item.counted.place in unread]
    quoting = [item.compaction for item in removals if item.counted.place in words.compactions]
    absence = _absence(facts, words, ~present & ~np.isin(facts.ledger.steps["epoch"], list(unread)))
    is_unread = absence is None and (absence := _absence(facts, words, ~present)) is not None
    first = removals[0]
    lost = first if absence is None else _losing(facts, words, removals, absence.first, unread)
    passage = "" if absence is None or is_unread else dict(words.passages).get(lost.counted.place, "")
    restated = absence is not None and not is_unread and lost.counted.place in words.restated
    rule = "" if absence is None or is_unread else dict(words.kept_rules).get(lost.counted.place, "")
    is_said = bool(passage) or restated
    forgetting = _forgetting(words, removals, lost, absence, unread) if absence and is_said else None
    by_edit = absence is not None and _leaves(facts, words, lost)
    step = first.step if absence is None else absence.first
    until = [item.compaction for item in removals if item.compaction in sealed and item.step < step]
    at_latest = bool(until) and not is_unread and not present[step - 1]
    begun_by = int(facts.ledger.steps["user_event"][step])
    numbers = {
        "message": words.message,
        "of_agent": words.of_agent,
        "quote": words.quote,
        "is_whole": words.is_whole,
        "compaction": lost.compaction,
        "by_edit": by_edit,
        "compactions": [item.compaction for item in removals],
        "quoted_by": quoting,
        "sealed": sealed,
        "at_latest": at_latest,
        "passage": passage,
        "kept_rule": rule,
        "restated": restated,
        "forgotten_by": -1 if forgetting is None else forgetting.compaction,
        "forgotten_at": -1 if forgetting is None else forgetting.step,
        "last_step_verbatim": first.step - 1,
        "first_absent": -1 if absence is None else absence.first,
        "last_absent": -1 if absence is None else absence.last,
        "continued_by": begun_by if begun_by in words.continued_by else -1,
    }
    what = f"left the context at {at_step(step)} ({_causes(numbers)}){' at the latest' if at_latest else ''}; "
    if is_unread:
        what += "the summary is not readable, so how much of it is kept is unknown."
    elif absence is None:
        it = "it" if words.is_whole else "its first words"
        what += f"the summary still quotes {it}." if lost.compaction in quoting else f"other messages quote {it}."
    else:
        what = _absent_words(words, absence, what, _causes(numbers))
        what += _quoting_words(words, [item for item in removals if item.compaction in quoting], absence)
        what += _said_words(numbers)
        if forgetting:
            lost_by = f"compaction {forgetting.compaction + 1:,} ({at_step(forgetting.step)})"
            what += f" The summary of {lost_by} no longer does."
        what += (
            f" The summary of {compactions_words(until)}, which may have had it, is not readable." if at_latest else ""
        )
    what += f" Message {begun_by + 1:,} asks only to continue with it." if begun_by in words.continued_by else ""
    sentence = f"{_request_of(words, numbers)} {what}"
    severity = INFO if absence is None or is_unread or (is_said and forgetting is None) else WARNING
    return Finding("request_lost", severity, step, sentence, numbers, (), _steps_of(removals), len(removals))


def _steps_of(removals: Iterable[Removal]) -> tuple[int, ...]:
    """LISTED of them at most; the finding has the number of all."""
    return tuple(item.step for item in islice(removals, LISTED))


def _causes(numbers: Mapping[str, Any]) -> str:
    """The compaction that took a request out of the context, or the edit after it."""
    by = compactions_words([numbers["compaction"]])
    return f"an edit of the history after {by}" if numbers["by_edit"] else by


def _said_words(numbers: Mapping[str, Any]) -> str:
    """What the summary says of a request that nothing quotes."""
    words = f' The summary quotes these words of it: "{numbers["passage"]}".' if numbers["passage"] else ""
    if rule := numbers["kept_rule"]:
        words += f' The summary keeps the rule "{rule}", but quotes nothing of what was asked for.'
    return words + (" The summary may say it in other words." if numbers["restated"] else "")


def _absent_words(words: RequestWords, absence: Absence, left: str, by: str) -> str:
    """That nothing has quoted a request since it `left`, or which requests are without it; `by` are the compactions."""
    if absence.is_final:
        return f"{left}nothing has quoted {'it' if words.is_whole else 'its first words'} verbatim since."
    requests = "request" if absence.first == absence.last else "requests"
    return f"is missing from the {requests} of {steps_words(absence.first, absence.last)} ({by})."


def _quoting_words(words: RequestWords, quoting: list[Removal], absence: Absence) -> str:
    """The compactions that quote a request which is absent later, or was."""
    if not quoting:
        return ""
    verb = "still quoted" if all(item.step < absence.first for item in quoting) else "quoted"
    compactions = compactions_words([item.compaction for item in quoting]).capitalize()
    return f" {compactions} {verb} {'it' if words.is_whole else 'them'}."


def _forgetting(
    words: RequestWords, removals: list[Removal], lost: Removal, absence: Absence, unread: Collection[int]
) -> Removal | None:
    """The first later compaction of the turn whose summary no longer says any of it, while its first words are gone."""
    saying = {*words.compactions, *dict(words.passages), *words.restated, *unread}
    later = [item for item in removals if lost.step < item.step <= absence.last]
    return next((item for item in later if item.counted.place not in saying), None)


def _removals(facts: Facts, words: RequestWords) -> list[Removal]:
    """The compactions of the request's turn after which the next request did not have the message itself, with those
    that they replaced before any call was made."""
    fired = [item for item in facts.recording.fired if int(facts.tasks[item.step]) == words.message]
    # An edit in between may have put the message back into the next request.
    return [
        Removal(index, item.step, counted)
        for item in fired
        if item.counted is not None
        and removes(facts.ledger, item.counted, words.message)
        and not holds(facts.ledger.recorded_view(item.step)[0], words.message)
        for index, counted in (*facts.replaced_by(item.counted), (item.index, item.counted))
        if removes(facts.ledger, counted, words.message)
    ]


def _losing(facts: Facts, words: RequestWords, removals: list[Removal], step: int, unread: Collection[int]) -> Removal:
    """The compaction that lost it: of those before the first call without it, the one since which nothing has it.

    Where the summary of one of several before the same call may have it, unread, the next that has it not is named.
    """
    last = [item for item in removals if item.step <= step][-1]
    absent = [last]
    for item in reversed([item for item in removals if item.step == last.step and item.compaction < last.compaction]):
        if _leaves(facts, words, last) or _leaves(facts, words, item):
            break
        absent.insert(0, item)
    return next((item for item in absent if item.counted.place not in unread), last)


def _leaves(facts: Facts, words: RequestWords, item: Removal) -> bool:
    """Does the history that a compaction leaves have the words, so that an edit after it lost them."""
    place = item.counted.place
    return place in words.compactions or _has_any(facts.ledger.bases[place].view, np.array(words.events, np.int64))


def _absence(facts: Facts, words: RequestWords, absent: NDArray[np.bool_]) -> Absence | None:
    """The first stretch of such steps since the first removal that begins in the request's own turn."""
    absent = absent.copy()
    absent[: _removals(facts, words)[0].step] = False
    in_turn = np.flatnonzero(absent & (facts.tasks == words.message))
    if not len(in_turn):
        return None
    first = int(in_turn[0])
    again = np.flatnonzero(~absent[first:])
    last = len(absent) - 1 if not len(again) else first + int(again[0]) - 1
    return Absence(first, last, not len(again))


def presence(facts: Facts, words: RequestWords | RuleWords | TodoWords) -> tuple[NDArray[np.bool_], frozenset[int]]:
    """At which steps the recorded request is known to have the words, in the message itself or in any text that says
    them; and the places of the compactions of which only the summary may have them, which is not readable."""
    events, bases, steps = np.array(words.events, dtype=np.int64), facts.ledger.bases, facts.ledger.steps
    quoting = [place in words.compactions or _has_any(base.view, events) for place, base in enumerate(bases)]
    starts = np.array([0, *(base.at for base in bases)], dtype=np.int64)
    later = np.append(events, facts.ledger.event_count)[np.searchsorted(events, starts)]  # first quotation since
    epoch = steps["epoch"] + 1
    present: NDArray[np.bool_] = np.array([False, *quoting])[epoch] | (steps["at"] > later[epoch])
    sealed = np.array([base.is_sealed for base in bases], dtype=np.bool_)
    may_say = may_be_summarised(bases, sealed, np.array([quoting], dtype=np.bool_), [events])
    return present, frozenset(np.flatnonzero(may_say[0]).tolist())


def _has_any(view: View, events: Ints) -> bool:
    spans = (segment for segment in view if isinstance(segment, Span))
    return any(np.searchsorted(events, span.start) < np.searchsorted(events, span.stop) for span in spans)


def _replayed(case: Case) -> list[Finding]:
    """Of a replay the summary's words are not known: only whether the message itself is still sent."""
    users, turns, count = (case.facts.ledger.steps[name] for name in ("user_event", "turn", "at"))
    carried: dict[int, ViewSums] = {}  # how often a view has the message of a turn
    lost = [
        item
        for item in case.fired
        if int(users[item.step]) >= 0
        and item.step + 1 < len(count)
        and turns[item.step + 1] == turns[item.step]
        and not _carries(case, item, int(users[item.step]), carried)
    ]
    if not lost:
        return []
    first, message = lost[0], int(users[lost[0].step])
    numbers = {"message": message, "compaction": first.index, "compactions": [item.index for item in lost]}
    more = "" if len(lost) == 1 else f" The same holds after {counted(len(lost) - 1, 'more compaction')}."
    rest = "only the summary can hold it" if case.may_summarise else "the policy makes no summary that could hold it"
    sentence = (
        f"After compaction {first.index + 1:,} ({at_step(first.step)}) the rest of the turn is sent without the "
        f"request (message {message + 1:,}) itself; {rest}.{more}"
    )
    steps = tuple(item.step for item in lost[:LISTED])
    return [Finding("request_lost", INFO, first.step, sentence, numbers, (), steps, len(lost))]


def _carries(case: Case, item: Fired, event: int, carried: dict[int, ViewSums]) -> bool:
    """Do the requests after the compacting one still have this event, or the request that the policy repeats."""
    record = item.record
    if record is None or case.trace is None or record.in_turn:
        return True
    view = record.carried
    if is_made_anew(record) and not case.may_summarise:  # what this compaction left is not part of the next request
        ledger = case.facts.ledger
        view = case.trace.view(item.step + 1, int(ledger.steps["at"][item.step + 1]), ledger)
    elif event >= record.kept_from:
        return True
    if event not in carried:
        carried[event] = ViewSums(lambda segment: has(segment, event) or repeats_request(segment))
    return carried[event].total(view) > 0
