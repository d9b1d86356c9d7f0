"""Sentences about lanes: where a snippet was lost, and what came back. Steps, messages and compactions count from 1."""

from __future__ import annotations

from guard_core.facts.instructions import LEAST_WORDS, REQUEST, RULE
from guard_core.facts.lanes import HELD, STATE_WORDS, UNSURE, Lane, SnippetChange, SnippetState
from guard_core.facts.texts import (
    AGREES,
    AGREES_HELD_OUT,
    CLAUSE_WORDS,
    FALSE_OF_OTHERS,
    FEWEST_UNSPACED,
    FEWEST_WORDS,
    LABELLED,
    OTHERS,
    PARAPHRASE_CUT,
    PASSAGE,
    RESTATED_CUT,
    UNSPACED_FOUND,
    UNSPACED_OTHERS,
    UNSPACED_PAIRS,
)
from guard_core.findings.facts import Facts
from guard_core.findings.words import at_step, compactions_words, counted

# What the words on lanes mean, and how far they can be trusted: a term and what is said of it.
METHOD = (
    (
        "Verbatim",
        "A message has the same words. Letter case, white space, the shapes of quotation marks and dashes, Markdown "
        "marks and string escapes around the words make no difference; a part of a word is not found.",
    ),
    (
        "Paraphrased",
        f"{PASSAGE} consecutive sentences that a compaction inserted have at least {100 * PARAPHRASE_CUT:.0f} % of the "
        "content words (inflected forms are the same word, and so are some nouns of verbs, deploy and deployment), "
        f"or, of a sentence of several clauses, {100 * RESTATED_CUT:.0f} % of those of each clause (of "
        f"{CLAUSE_WORDS} content words or more). For an instruction of fewer than {FEWEST_WORDS} content words the "
        "passage must have all of them; other short texts must be quoted. "
        "In Chinese, Japanese and Korean text, pairs of characters are words, and at least "
        f"{FEWEST_UNSPACED} are needed.",
    ),
    (
        "Accuracy",
        f"On English summaries that a person labelled (COMPINT), it agrees with {AGREES} of {LABELLED}, "
        f"{AGREES_HELD_OUT} of {LABELLED} held out; of {OTHERS} sentences that were never said it takes "
        f"{FALSE_OF_OTHERS} for paraphrased. Of {UNSPACED_PAIRS} paraphrases written in Chinese, Japanese "
        f"and Korean it finds "
        f"{UNSPACED_FOUND}, and it takes none of {UNSPACED_OTHERS} other pairs for one. In other languages it is not "
        "measured.",
    ),
    (
        "Limits",
        "Words are compared, not meaning. Synonyms are not recognised and count as gone. A sentence that lifts an "
        "instruction does not say it where its words show so in English, German, French, Spanish, Chinese, Japanese or "
        "Korean (is allowed, no longer required), nor does one that reverses it in English (do not run for run, "
        "run for do not run), even with its words behind the negation; any other negated sentence counts as the same. "
        "Of a sentence that gives several instructions, or has an exception, each must be found, "
        "as far as they are joined by words such as and, but, never or unless, in the European languages listed "
        "below. Where a summary is in another language or script than a sentence, its words cannot be compared: the "
        "sentence is perhaps translated. "
        "Instructions are recognised by their wording (must, never, only, please …) in English, German, French, "
        "Spanish, Portuguese, Italian, Dutch, Polish, Russian, Arabic, Chinese, Japanese and Korean; others, and those "
        "of fewer than "
        f"{LEAST_WORDS} content words, are not listed. The model's own "
        "messages are searched for quotations only. A rule that a later sentence of the user takes back, where the "
        "same words show so, is withdrawn from then on, and not lost. Whether other instructions still apply is not "
        "judged.",
    ),
)


_UNREAD = {SnippetState.UNKNOWN: "whose text is unknown", SnippetState.TRANSLATED: "in another language"}


def change_words(change: SnippetChange, steps: int) -> str:
    """What happened at one change of a lane, as a clause without its subject."""
    where = at_step(change.step)
    by = f" ({compactions_words([change.compaction])})" if change.compaction >= 0 else ""
    if change.before is SnippetState.NOT_YET and change.after in UNSURE:
        return f"in no message that was sent; from {where} on{by} only a summary {_UNREAD[change.after]} can hold it"
    if change.before is SnippetState.NOT_YET:
        return f"first in the request of step {change.step + 1:,}"
    if change.after is SnippetState.VERBATIM:
        message = f" with message {change.event + 1:,}" if change.event >= 0 else ""
        return f"back at {where}{message}{by}"
    if change.after is SnippetState.GONE:
        return f"lost at {where}{by}{' at the latest' if change.before in UNSURE else ''}"
    if change.after in UNSURE:
        return f"left at {where}{by}; only a summary {_UNREAD[change.after]} can hold it"
    return f"{STATE_WORDS[change.after]} from {where} on{by}"


def outcome_words(lane: Lane) -> str:
    """What became of a snippet by the last request, as a clause without its subject."""
    if lane.withdrawn_at >= 0:
        words = f"withdrawn with message {lane.snippet.withdrawn_by + 1:,} ({at_step(lane.withdrawn_at)})"
        return ", ".join((*(change_words(change, lane.steps) for change in lane.losses[-1:]), words))
    if not lane.changes:
        return "in no request as whole words"
    if lane.lost is not None:
        words = ", ".join((*_earlier_losses(lane), change_words(lane.lost, lane.steps)))
        if lane.last_step < 0:
            return f"{words}; no request is known to have it"
        known = "known to have" if lane.lost.before in UNSURE else "with"
        return f"{words}; the last request {known} it is step {lane.last_step + 1:,}"
    if lane.is_unseen:
        since = f"the recorded prompt fell at {at_step(lane.unseen_from)}"
        if lane.unseen_by >= 0:
            since = f"{compactions_words([lane.unseen_by])}, as the file does not have what it removed"
        return f"unknown since {since}; no message has brought it again"
    back = f"lost and back {counted(len(lane.losses), 'time')}" if lane.losses else ""
    held = (
        "in the last request"
        if lane.last_state is SnippetState.VERBATIM
        else change_words(lane.changes[-1], lane.steps)
    )
    return ", ".join(filter(None, (held, back)))


def _earlier_losses(lane: Lane) -> list[str]:
    """The first loss and what brought it back, where it was lost again later, and how many losses lie between."""
    first = lane.losses[0]
    if first is lane.lost:
        return []
    back = next(change for change in lane.changes if change.step > first.step and change.after in HELD)
    between = len(lane.losses) - 2
    more = [f"lost and back {counted(between, 'more time')}"] if between else []
    return [change_words(first, lane.steps), change_words(back, lane.steps), *more]


def read_again_words(lane: Lane) -> str:
    """The price of having cleared it, as a clause; "" where nothing was read again."""
    if not lane.read_again:
        return ""
    return f"read again {counted(len(lane.read_again), 'time')}, {lane.read_again_tokens:,} prompt tokens (attributed)"


def blind_words(facts: Facts) -> str:
    """Of a recording: what left its requests unseen, by compactions of which the file does not hold what they removed,
    or where the recorded prompt fell without one; "" where nothing did."""
    return " ".join(filter(None, (_removed_unseen(facts), _fallen(facts))))


def _removed_unseen(facts: Facts) -> str:
    if not facts.unseen:
        return ""
    return (
        f"What {compactions_words(facts.unseen)} removed is not in the file: whether later requests still have what "
        "was said before is not known."
    )


def _fallen(facts: Facts) -> str:
    falls = facts.lasting_falls
    if not falls:
        return ""
    worst = max(falls, key=lambda fall: fall.missing)
    more = "" if len(falls) == 1 else f" (and at {counted(len(falls) - 1, 'other step')}, without returning)"
    epochs = facts.ledger.steps["epoch"]
    until = "from there on" if epochs[worst.step] == epochs[-1] else "from there to the next compaction"
    return (
        f"The recorded prompt fell from {worst.before:,} to {worst.after:,} tokens at {at_step(worst.step)}{more}, and "
        f"no compaction is recorded there: whether the requests {until} still have what was said before is not known."
    )


def summary_words(lanes: tuple[Lane, ...], *, has_system_prompt: bool = True) -> str:
    """Of how many instructions the last request has the words, how many it has in other words, and how many were lost,
    in one sentence; in another one how many the user took back."""
    rules = [lane for lane in lanes if lane.snippet.kind in (RULE, REQUEST)]
    if not rules:
        if not has_system_prompt:
            return "No sentence of a user was recognised as an instruction. The file lacks the system prompt."
        return "No sentence of a user or of the system prompt was recognised as an instruction."
    in_force = [lane for lane in rules if lane.withdrawn_at < 0]
    withdrawn = len(rules) - len(in_force)
    taken_back = f"{counted(withdrawn, 'rule')} {'was' if withdrawn == 1 else 'were'} withdrawn by the user."
    return " ".join((*([_held_words(in_force)] if in_force else []), *([taken_back] if withdrawn else [])))


def _held_words(rules: list[Lane]) -> str:
    """What the last request has of instructions that nobody took back."""
    lost = [lane for lane in rules if lane.lost is not None and lane.last_state is SnippetState.GONE]
    unknown, translated = (
        sum(lane.last_state is state for lane in rules) for state in (SnippetState.UNKNOWN, SnippetState.TRANSLATED)
    )
    unseen = sum(lane.unseen_by >= 0 for lane in rules)
    fallen = sum(lane.is_unseen for lane in rules) - unseen
    paraphrased = sum(lane.last_state is SnippetState.PARAPHRASED for lane in rules if not lane.is_unseen)
    held = sum(lane.last_state in HELD for lane in rules) - fallen - unseen - paraphrased
    fates = {
        "only paraphrased": paraphrased,
        "lost": len(lost),
        "perhaps translated in a summary": translated,
        "in a summary of unknown text, if at all": unknown,
        "unknown since the recorded prompt fell": fallen,
        "in a message that a compaction perhaps removed": unseen,
    }
    fates = {fate: count for fate, count in fates.items() if count}
    each = ", ".join(f"{count:,} {fate}" for fate, count in fates.items())
    if held:
        words = f"The words of {held:,} of {counted(len(rules), 'instruction')} are in the last request"
        return ", ".join(filter(None, (words, each))) + "."
    if len(rules) in fates.values():  # all became the same
        are = {1: "it is", 2: "both are"}.get(len(rules), f"all {len(rules):,} are")
        each = f"{are} {next(iter(fates))}"
    known = " known to be" if unknown or fallen or unseen else ""
    none = f"none of the {len(rules):,} instructions are" if len(rules) > 1 else "the one instruction are not"
    return ": ".join(filter(None, (f"The words of {none}{known} in the last request", each))) + "."
