"""The verdict: one sentence of at most 25 words that leads with what matters most."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from guard_core.counts import MODELLED, Peak
from guard_core.findings.claims import (
    ERROR,
    INFO,
    MODELLED_TOKENS,
    RULE_DEFAULTS,
    SIZES_ONLY,
    TRIGGER_NOT_RECORDED,
    Finding,
    Verdict,
)
from guard_core.findings.facts import Case, Facts
from guard_core.findings.peak import peak_of
from guard_core.findings.presence import shortened
from guard_core.findings.repeated_results import repeated_words
from guard_core.findings.repetition import loop_words, pace_words
from guard_core.findings.sizes import (
    assumptions_at,
    if_window_at,
    limit_words,
    overflow_words,
    refused_words,
    stated_window,
)
from guard_core.findings.words import at_step, counted, if_window, percent, steps_words
from guard_core.rules.inference import bound_words
from guard_core.sessions import (
    BEGINS_WITH_SUMMARY,
    DAMAGED,
    HEADED_SUMMARY,
    MAY_BE_CONTINUED,
    MAY_BE_REPEATED,
    MAY_BE_SUMMARISED,
    MAY_BEGIN_WITH_SUMMARY,
    MAY_CONTINUE,
    MAY_FOLLOW,
    MAY_GO_ON,
    MAY_REPEAT,
    NO_CONTENT,
    UNRECORDED_COMPACTIONS,
    WROTE_SUMMARY,
    Evidence,
)
from guard_core.trace import Trace
from guard_core.windows.window_evidence import are_all_forced, fired_words

MOST_WORDS = 25
QUOTED_CHARS = 30  # of a request, in a verdict

_HEALTHY = "Healthy: no compaction needed"
# What is said where what came before, or after, is perhaps elsewhere.
NO_WHOLE = {
    MAY_CONTINUE: "No compaction in the file, perhaps continued from another conversation",
    MAY_REPEAT: "No compaction in the file, perhaps continued from another conversation",
    BEGINS_WITH_SUMMARY: "Begins with an earlier context's summary, no compaction since",
    HEADED_SUMMARY: "No compaction in the file, perhaps begun with a summary",
    UNRECORDED_COMPACTIONS: "No compaction in the file, which need not record one",
    NO_CONTENT: "No compaction can be seen, as no message content was found",
    MAY_BE_CONTINUED: "No compaction in the file, perhaps continued in another conversation",
    MAY_BE_REPEATED: "No compaction in the file, perhaps continued in another conversation",
    MAY_BEGIN_WITH_SUMMARY: "No compaction in the file, perhaps continued from another conversation",
    MAY_BE_SUMMARISED: "No compaction in the file, perhaps continued in another conversation",
    MAY_FOLLOW: "No compaction in the file, perhaps continued from another conversation",
    MAY_GO_ON: "No compaction in the file, perhaps continued in another conversation",
    WROTE_SUMMARY: "The call that wrote a compaction's summary",
    DAMAGED: "No compaction in what could be read of the file",
}

_ONLY_IF_GRAVE = ("request_lost", "earlier_rule_lost", "todo_lost", "grown", "repeated_call")
# Of words that left the context: whose they are, if a person wrote them and if an agent did, the number that has them,
# and which later requests do not.
_LOST = {
    "part_lost": ("of your request,", "of the task,", "quote", " of the turn"),
    "rule_lost": ("your rule", "the task's rule", "rule", " of the turn"),
    "earlier_rule_lost": ("your earlier rule", "the earlier task's rule", "rule", ""),
    "todo_lost": ("the agent's open todo", "the agent's open todo", "todo", ""),
}

# The verdict that a finding leads: one function for each kind, however short, so that all are in the order of _ORDER.
Wording = Callable[[Case, Finding], str]


def recorded_verdict(facts: Facts, findings: tuple[Finding, ...]) -> Verdict:
    """What matters most in a recording, of its `recorded_findings`."""
    return _verdict(facts.recording, findings)


def replayed_verdict(facts: Facts, trace: Trace, findings: tuple[Finding, ...]) -> Verdict:
    """What matters most in a replay, of its `replayed_findings`."""
    return _verdict(facts.replay(trace), findings)


def _verdict(case: Case, findings: tuple[Finding, ...]) -> Verdict:
    if not len(case.tokens):
        refused = len(case.facts.session.refused)
        if not refused:
            return Verdict("no_calls", INFO, 0, "No model call in this session.")
        sentence = f"No call was answered: {counted(refused, 'request')} failed as too long (recorded)."
        return Verdict("no_calls", ERROR, 0, sentence, {"requests": refused})
    leading = [finding for finding in findings if finding.kind in _ORDER and _leads(finding)]
    left = next((finding for finding in findings if finding.kind == "left_branches"), None)
    if not leading:
        return _healthy(case, left)
    order = list(_ORDER)
    first = min(leading, key=lambda finding: (finding.severity != ERROR, order.index(finding.kind)))
    sentence = _of_branch(_ORDER[first.kind](case, first), left)
    return Verdict(first.kind, first.severity, first.step, sentence, first.numbers, first.assumptions)


def _leads(finding: Finding) -> bool:
    """A request that is still quoted, a rule that may have been of its turn, a todo whose list was written again, and a
    growth that only the file's gap shows, lead no verdict; that calls are not counted does, where a sum of them says
    that estimates are not their sizes."""
    if finding.kind == "no_usage":
        return "each" in finding.numbers
    return finding.severity != INFO or finding.kind not in _ONLY_IF_GRAVE


def _of_branch(sentence: str, left: Finding | None) -> str:
    """A sentence that says, where it matters and there is room, that it speaks of the branch that was continued."""
    named = f"This branch: {sentence[0].lower()}{sentence[1:]}"
    if left is not None and len(named.split()) <= MOST_WORDS:
        return named
    return sentence[0].upper() + sentence[1:]


def _healthy(case: Case, left: Finding | None) -> Verdict:
    """Nothing to report but how full the window was."""
    peak = peak_of(case)
    modelled = (MODELLED_TOKENS,) if peak.source == MODELLED else ()
    uncounted = modelled and not case.facts.requests.reported.any() and case.facts.ledger.usage_ratio is None
    numbers: dict[str, Any] = {"peak": peak.tokens, "peak_step": peak.step, "peak_source": peak.source}
    numbers |= {} if _is_window_unknown(case, peak.step) else {"window": case.window_at(peak.step)}
    numbers["compactions"] = _total(case)
    assumptions = (*assumptions_at(case, peak.step), *modelled, *((SIZES_ONLY,) if uncounted else ()))
    count = _total(case)
    head = f"{counted(count, 'compaction')}{_remark(case)}" if count else _uncompacted(case, left)
    sentence = f"{head}; {_peak_words(case, peak)}."
    if len(sentence.split()) > MOST_WORDS:
        sentence = f"{head}; {_peak_words(case, peak, is_short=True)}."
    if left is not None:
        numbers["left"] = left.numbers
        sentence = _of_branch(sentence, left) if count else sentence
    if (lacking := case.facts.not_estimated) and case.is_recorded:
        longer = sentence.replace("(estimated)", f"(estimated without {lacking})", 1)
        sentence = longer if len(longer.split()) <= MOST_WORDS else sentence
    return Verdict("healthy", INFO, peak.step, sentence, numbers, assumptions)


def _uncompacted(case: Case, left: Finding | None) -> str:
    """What is said of a session without a compaction."""
    if not case.is_recorded:
        return _HEALTHY
    if left is not None:
        return f"No compaction on this branch, {_left_words(left.numbers)}"
    session = case.facts.session
    if edits := sum(item.evidence is Evidence.DECLARED for item in session.compactions):
        return f"No compaction, {counted(edits, 'recorded edit')} of the history"
    return next((words for note, words in NO_WHOLE.items() if note in session.notes), _HEALTHY)


def _left_words(numbers: dict[str, int]) -> str:
    """What was worst on branches that were left."""
    if numbers["refused"]:
        return f"{counted(numbers['refused'], 'overflow')} on others"
    if numbers["compactions"]:
        return f"{numbers['compactions']:,} on others"
    return f"{numbers['largest']:,} tokens on another"


def _remark(case: Case) -> str:
    """Why nothing is said of what a recording's compactions were good for."""
    facts, counts = case.facts, case.facts.counts
    if not case.is_recorded:
        return ""
    if counts.at_the_end == counts.total:
        return " at the end of the recording"
    whose = "some of them" if len(facts.unseen) < len(case.fired) else "it" if counts.total == 1 else "they"
    return f", what {whose} removed not in the file" if facts.unseen else ""


def _total(case: Case) -> int:
    return case.facts.counts.total if case.is_recorded else len(case.fired)


def _is_window_unknown(case: Case, step: int) -> bool:
    """Is a step's call of another model, whose window is not known."""
    return not case.rests_on_window(step) and not case.windows[step]


def _peak_words(case: Case, peak: Peak, *, is_short: bool = False) -> str:
    source = "estimated" if case.facts.is_uncounted else "modelled"
    estimated = f" ({source})" if peak.source == MODELLED else ""
    if _is_window_unknown(case, peak.step):
        return f"peak {peak.tokens:,} tokens of an unknown window at {at_step(peak.step)}{estimated}"
    window = case.window_at(peak.step)
    share = percent(peak.tokens / window) if window else "?"
    whose = "the window" if case.rests_on_window(peak.step) else "its model's window"
    where = "" if is_short else f" of {whose} at {at_step(peak.step)}"
    return f"peak {share}{where}{estimated}{if_window_at(case, peak.step)}"


def _head(case: Case) -> str:
    """How many compactions there are, to begin with."""
    count = _total(case)
    return f"{counted(count, 'compaction')}; " if count else ""


def _contradicted(case: Case, finding: Finding) -> str:
    tokens, window = finding.numbers["tokens"], finding.numbers["window"]
    on_average = case.facts.is_uncounted
    answered = f"Prompts of {tokens:,} tokens on average were" if on_average else f"A prompt of {tokens:,} tokens was"
    return f"{answered} answered, above {stated_window(case.facts)} of {window:,}. Set the real window."


def _late(case: Case, finding: Finding) -> str:
    over = percent(finding.numbers["tokens"] / finding.numbers["window"] - 1)
    return (
        f"{_head(case)}too late: {at_step(finding.numbers['step_over'])} was {over} over the window "
        f"(modelled){if_window_at(case, finding.step)}."
    )


def _overflow(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    if numbers["answered"] == numbers["calls"]:
        return (
            f"Peak estimated at {percent(1 + numbers['over_share'])} of the window at {at_step(finding.step)}"
            f"{if_window_at(case, finding.step)}, yet answered: larger window, or smaller requests."
        )
    how = "estimated" if case.facts.is_uncounted else "modelled"
    where = at_step(numbers["first"]) if numbers["calls"] == 1 else f"the first at {at_step(numbers['first'])}"
    return (
        f"{_head(case)}{counted(numbers['calls'], 'call')} over the window, {where}; peak "
        f"{percent(1 + numbers['over_share'])} of it ({how}){if_window_at(case, finding.step)}."
    )


def _refused(case: Case, finding: Finding) -> str:
    size = limit_words(finding.numbers) or overflow_words(finding.numbers)
    return f"{_head(case)}{refused_words(finding.numbers)}: {size} (recorded)."


def _refused_again(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}{counted(numbers['requests'], 'request')}, up to {numbers['tokens']:,} tokens (modelled), "
        f"{'is' if numbers['requests'] == 1 else 'are'} as large as one that the provider refused."
    )


def _counted_over(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    whose = "the window" if case.rests_on_window(finding.step) else "its model's window"
    return (
        f"{_head(case)}the agent counted {numbers['tokens']:,} tokens at {at_step(finding.step)}, over {whose} of "
        f"{numbers['window']:,}."
    )


def _request(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    if "quote" not in numbers:
        head = f"{_head(case)}after {at_step(finding.step)}"
        return f"{head} the request is no longer sent verbatim for the rest of the turn."
    when = f"{'by' if numbers['at_latest'] else 'at'} {at_step(finding.step)}"
    it = "it" if numbers["is_whole"] else "its first words"
    left = f"left the context {when}; nothing has quoted {it} verbatim since"
    if numbers["last_absent"] < len(case.tokens) - 1:
        first, last = numbers["first_absent"], numbers["last_absent"]
        left = f"is missing from the request{'s' if first < last else ''} of {steps_words(first, last)}"
    quote = shortened(numbers["quote"], QUOTED_CHARS)
    cut = "" if numbers["is_whole"] and quote == numbers["quote"] else " …"
    head = f"{_head(case)}{'the task' if numbers['of_agent'] else 'your request'}"
    sentence = f'{head} "{quote}{cut}" {left}.'
    if (more := len(sentence.split()) - MOST_WORDS) <= 0:
        return sentence
    shorter = " ".join(quote.split()[: -more - (not cut)])  # of many short words, as many as there is room for
    return f'{head} "{shorter} …" {left}.'


def _quoted(case: Case, finding: Finding) -> str:
    numbers, (of_person, of_agent, name, of_which) = finding.numbers, _LOST[finding.kind]
    whose = of_agent if numbers.get("of_agent") else of_person
    words = str(numbers[name])
    left = f"left the context at {at_step(finding.step)}; no later request{of_which} quotes it."
    sentence = f'{_head(case)}{whose} "{{}}" {left}'
    whole = sentence.format(words if numbers["is_whole"] else f"{words} …")
    if (more := len(whole.split()) - MOST_WORDS) <= 0:
        return whole
    more += bool(numbers["is_whole"])  # the mark of what is left out counts as a word
    return sentence.format(f"{' '.join(words.split()[:-more])} …")


def _loop(case: Case, finding: Finding) -> str:
    return f"A loop: {loop_words(finding.numbers)}: every call compacts again."


def _sliding(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    where = f"{counted(numbers['changed'], 'call')} from {at_step(numbers['first'])}"
    return f"Sliding window: {where} trim the history; {_peak_words(case, peak_of(case))}."


def _thrash(case: Case, finding: Finding) -> str:
    return f"Thrashing: {pace_words(finding.numbers)}."


def _not_kept(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}compaction {numbers['compaction'] + 1:,} did not last: {numbers['again']:,} tokens are back at "
        f"{at_step(numbers['again_step'])}."
    )


def _truncated(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    then = "and no compaction is recorded there"
    if "back" in numbers:
        then = f"but returned to {numbers['back']:,} at {at_step(numbers['back_step'])}: no lasting cut"
    return (
        f"{_head(case)}the recorded prompt fell from {numbers['before']:,} to {numbers['after']:,} tokens at "
        f"{at_step(finding.step)}, {then}."
    )


def _cleared(case: Case, finding: Finding) -> str:
    numbers, peak = finding.numbers, peak_of(case)
    words = _peak_words(case, peak, is_short=bool(if_window_at(case, peak.step)))  # there is no room for where, too
    return (
        f"{_head(case)}tool results of {counted(numbers['messages'], 'message')} cleared or shortened, first at "
        f"{at_step(finding.step)}; {words}."
    )


def _repeated(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}{numbers['repeated']:,} of {numbers['counted']:,} recorded counts repeat the one before, though "
        "messages were added: what those calls sent is not known."
    )


def _in_characters(case: Case, finding: Finding) -> str:
    return (
        f"{_head(case)}{finding.numbers['same']:,} recorded counts grew by one token per byte: they seem to count "
        "characters, so nothing follows from them."
    )


def _cached_above(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    counts = f"{numbers['above']:,} of {counted(numbers['counted'], 'recorded count')}"
    return (
        f"{_head(case)}{counts} {'has' if numbers['above'] == 1 else 'have'} more cached than prompt tokens: how "
        "large those requests were is not known."
    )


def _only_a_sum(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    each = f", {numbers['each']:,} each if there were {numbers['calls']:,}" if numbers["calls"] > 1 else ""
    total = counted(numbers["total"], "prompt token")
    return f"{_head(case)}no call is counted: {total} in total{each}; the peak is not known."


def _grown(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    is_larger = numbers["after"] > numbers["before"]
    what = "was followed by a larger request" if is_larger else "did not shrink the request"
    return (
        f"{_head(case)}compaction {numbers['compaction'] + 1:,} {what}: {numbers['before']:,} to "
        f"{numbers['after']:,} tokens at {at_step(finding.step)}{' (modelled)' if case.modelled[finding.step] else ''}."
    )


def _empty(case: Case, finding: Finding) -> str:
    return f"{_head(case)}the summary at {at_step(finding.step)} is empty: nothing replaces what it removed."


def _no_fit(case: Case, finding: Finding) -> str:
    if "the system prompt" not in finding.sentence:
        where = at_step(finding.step)
        return f"{_head(case)}what a compaction leaves is over the limit at {where}{if_window(case.window)}."
    return (
        f"No compaction can fit: the system prompt and tools, about {finding.numbers['floor']:,} tokens, are over the "
        f"limit{if_window(case.window)}."
    )


def _tail(case: Case, finding: Finding) -> str:
    first, last = finding.numbers["first"] + 1, finding.numbers["last"] + 1
    return (
        f"{_head(case)}messages {first:,} to {last:,}, kept at {at_step(finding.step)}, are in no later request and no "
        "summary."
    )


def _doubted(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    low, high = numbers["low"], numbers["high"]
    where = fired_words(case.facts.session, low, high)
    if_automatic = ", if automatic," if TRIGGER_NOT_RECORDED in finding.assumptions else ""
    early = "smaller window, or hand-set threshold"
    if are_all_forced(case.facts.session, case.facts.answers):
        early = "smaller window, or larger requests than counted"
    return (
        f"{counted(numbers['compactions'], 'compaction')}{if_automatic} {where}, below half of "
        f"{stated_window(case.facts)} of {numbers['window']:,}: {early}."
    )


def _needless(case: Case, finding: Finding) -> str:
    numbers, count = finding.numbers, finding.numbers["compactions"]
    if count == _total(case):
        head = (
            "1 compaction, not needed: without it"
            if count == 1
            else f"{count:,} compactions, none needed: without them"
        )
    else:
        head = f"{counted(_total(case), 'compaction')}, {count:,} not needed: without {'it' if count == 1 else 'them'}"
    peak = "the peak is"
    if TRIGGER_NOT_RECORDED in finding.assumptions:
        head, peak = head.replace(" needed:", " needed if automatic:", 1), "peak"
    return (
        f"{head}, {peak} {percent(numbers['peak'] / numbers['window'])} of {_its_window(numbers)} at "
        f"{at_step(numbers['peak_step'])} (modelled){if_window(case.window)}."
    )


def _near(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    if finding.step == peak_of(case).step:
        return f"{_head(case)}{_peak_words(case, peak_of(case))}: {_room_words(numbers)} room was left."
    whose = "the window" if case.rests_on_window(finding.step) else "its model's window"
    fills = f"{at_step(finding.step)} fills {percent(finding.numbers['share'])} of {whose}"
    how = " (modelled)" if case.modelled[finding.step] else ""
    return f"{_head(case)}{fills}{how}{if_window_at(case, finding.step)}: {_room_words(numbers)} room was left."


def _room_words(numbers: dict[str, Any]) -> str:
    """How much room a request that nearly fills its window leaves."""
    return "no" if numbers["tokens"] == numbers["window"] else "little"


def _needed(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    over = f", {counted(numbers['calls_over'], 'call')} over it" if numbers["calls_over"] else ""
    if not over and numbers.get("tight"):
        over = f", {counted(numbers['tight'], 'call')} lacking room to answer"
    without = "any but the manual ones" if case.is_recorded and case.facts.counts.manual else "any"
    return (
        f"{counted(_total(case), 'compaction')}, no overflow. Without {without}: peak "
        f"{percent(numbers['peak'] / numbers['window'])} of {_its_window(numbers)}{over} (modelled)"
        f"{if_window(case.window)}."
    )


def _its_window(numbers: dict[str, Any]) -> str:
    """The window that the fullest request is held against: the session's, or that of its model."""
    return "its model's window" if "own_window" in numbers else "the window"


def _gap(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}{at_step(finding.step)} was caught only by the estimate (last count {numbers['seen']:,}, "
        f"estimate {numbers['now']:,}){if_window(case.window)}."
    )


def _never_acts(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    fired = numbers["high"] <= numbers["threshold"]
    did = f"compacted at {numbers['high']:,}" if fired else f"did not compact at {numbers['low']:,}"
    return (
        f"{_head(case)}the typed {numbers['setting']} of {numbers['value']:,} never acts: {numbers['agent']} {did}; "
        f"its threshold would be {numbers['threshold']:,}{_if_its_window(case, finding)}."
    )


def _other_threshold(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    least, most = bound_words(numbers["relation"])
    is_ = f"{_head(case)}the threshold of {numbers['agent']} is "
    if "low" in numbers and numbers["threshold"] < numbers["low"] + (numbers["relation"] != ">"):  # a check that passed
        is_ += f"{least} {numbers['low']:,}"
    else:
        is_ += f"{most} {numbers['high']:,}{'' if numbers['by_itself'] else ' if automatic'}"
    if "assumed_window" in numbers:
        window, would = numbers["assumed_window"], numbers["threshold"]
        return f"{is_}; its window is not known, the assumed {window:,} would give {would:,}."
    return f"{is_}, not the default {numbers['threshold']:,}{_if_its_window(case, finding)}."


def _early(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}{at_step(finding.step)} compacted early by the {_whose_rule(finding)} of {numbers['agent']}: "
        f"{'at most ' if numbers['is_bound'] else ''}{numbers['count']:,}, below {numbers['threshold']:,}"
        f"{_if_its_window(case, finding)}."
    )


def _missed(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    too = ", too" if case.fired else ""
    return (
        f"{_head(case)}by its {_whose_rule(finding)} {numbers['agent']} would have compacted at "
        f"{at_step(finding.step)}{too}: "
        f"{numbers['count']:,} reached {numbers['threshold']:,}{_if_its_window(case, finding)}."
    )


def _inline(case: Case, finding: Finding) -> str:
    numbers = finding.numbers
    return (
        f"{_head(case)}at {at_step(finding.step)} {percent(numbers['inline_share'])} of the estimate of "
        f"{numbers['estimate']:,} was inline data; the request had {numbers['real']:,} (modelled)"
        f"{if_window(case.window)}."
    )


def _repeated_call(case: Case, finding: Finding) -> str:
    words = repeated_words(finding.numbers)
    return f"{_head(case)}{words[0].lower()}{words[1:]}."


def _whose_rule(finding: Finding) -> str:
    """What a rule is called that rests on settings which the file lacks."""
    return "default rule" if RULE_DEFAULTS in finding.assumptions else "rule"


def _if_its_window(case: Case, finding: Finding) -> str:
    """The window that a rule's threshold is made of, where the session's cannot be relied on."""
    unsure = case.window.is_unsure
    return f", if the window is {finding.numbers['window']:,}" if unsure and "window" in finding.numbers else ""


_ORDER: dict[str, Wording] = {
    "usage_in_characters": _in_characters,
    "window_contradicted": _contradicted,
    "no_fit": _no_fit,
    "late": _late,
    "refused": _refused,
    "overflow": _overflow,
    "refused_again": _refused_again,
    "counted_over": _counted_over,
    "tail_lost": _tail,
    "loop": _loop,
    "summary_not_kept": _not_kept,
    "empty_summary": _empty,
    "request_lost": _request,
    "part_lost": _quoted,
    "rule_lost": _quoted,
    "earlier_rule_lost": _quoted,
    "todo_lost": _quoted,
    "usage_repeated": _repeated,
    "cached_above": _cached_above,
    "silent_truncation": _truncated,
    "grown": _grown,
    "thrash": _thrash,
    "window_doubted": _doubted,
    "setting_never_acts": _never_acts,
    "sliding_window": _sliding,
    "needless": _needless,
    "near_miss": _near,
    "inline_data": _inline,
    "own_early": _early,
    "own_missed": _missed,
    "other_threshold": _other_threshold,
    "timing_gap": _gap,
    "repeated_call": _repeated_call,
    "needed": _needed,
    "results_cleared": _cleared,
    "no_usage": _only_a_sum,
}
