"""How each kind of claim about a recording is recomputed. A check raises Wrong, or returns in silence."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise

from guard_core.checker.plain_words import is_closed, is_long, plainly_lifts
from guard_core.checker.prices import never_paid
from guard_core.checker.shared import (
    answer_rooms,
    at_consecutive_steps,
    came_too_late,
    comes_near,
    drops_at_every_call,
    fullest_without,
    history_is_back,
    in_quick_succession,
    is_forced,
    largest_over,
    near_the_window,
    refused_before,
    says_what_is_uncounted,
    sliding_moves,
    tight_calls,
)
from guard_core.checker.story import Story, Wrong, agree, holds, number, own_texts, same, spoken, step_of
from guard_core.estimation.baselines import count_changes
from guard_core.events import Event, MediaPart, ReasoningPart, Role, ToolCallPart, ToolResultPart, part_text
from guard_core.facts.instructions import (
    REQUEST,
    RULE,
    directs,
    is_universal,
    kind_of,
    outlasts_its_turn,
    says_something,
)
from guard_core.facts.lifting import permits
from guard_core.facts.texts import (
    common_words,
    content_words,
    conveys,
    instructions_in,
    paraphrases,
    split_sentences,
)
from guard_core.facts.todos import OpenTodo, Todos
from guard_core.facts.withdrawals import takes_back, withdraws
from guard_core.findings.claims import INFO, TRIGGER_NOT_RECORDED, Finding
from guard_core.requests import materialise
from guard_core.sessions import RecordedCompaction, Session
from guard_core.tokens.lexical import lexical_tokens
from guard_core.views import Rewritten
from guard_core.windows.window_evidence import Status

# Recorders' words.
_AUTOMATIC = (
    *("auto", "automatic", "threshold", "overflow", "image_overflow", "contextguard"),
    *("memory_pressure", "model_switch", "preflight", "cut_off"),
)
_AT_ANY_SIZE = ("cut_off", "image_overflow", "memory_pressure", "model_switch")
_UNSEEN = 20_000  # tokens of attached files and reminders that a request may have besides the text in the file
_LEAST_CLEARED = 1_024  # tokens; less does not count as clearing
_MOST_TODOS = 10  # of a list that are looked for
_LONGEST_FRAME = 2_000  # letters that a client writes around a summary
_MOST_MESSAGES = 20  # with rules that a later turn lost
_MOST_RULES = 5  # of one message that are looked for
_LONGEST_CYCLE = 6  # calls that are made in turn
_FEWEST_IN_A_ROW, _SMALLEST_RESULT = 5, 20  # calls with one result that are no accident, and its bytes
_LARGE_RESULT = 1_000  # bytes of a result that is no accident where it comes again
END_MARKS = " \"'.,;:!?…。，；：！？、"
# The word that joins a rule to what is asked for before it, and what a rule may depend on.
_LINK = re.compile(r"^(?:and|but|or|und|aber|oder|et|mais|ou|y|pero|o|mas|maar|ale|но|и)\s+", re.IGNORECASE)
_DEPENDS = re.compile(
    r"\W*(?:from|when|whenever|if|before|after|while|in|for|on|at|during|as|since|until|to|by|wenn|ab|bei|beim|vor|nach"
    r"|für|fuer|solange|bevor|quand|lorsque|si|dès|avant|après|pour|dans|cuando|al|antes|después|desde|para|en|se|quando"
    r"|prima|dopo|per|als|voor|w|przed|po|если|когда|перед|после)\b",
    re.IGNORECASE,
)
_MARKS = "\"'“‘« "  # a request that its agent wrote in quotation marks is quoted without them


def window_contradicted(story: Story, finding: Finding) -> None:
    if story.average is not None:
        if story.average <= story.window:
            raise Wrong(f"the average request of {story.average} tokens is not larger than {story.window}")
        agree(finding, window=story.window, tokens=story.average, calls=story.session.total_calls)
        return
    calls, windows = story.session.calls, story.session.windows
    is_own = [story.stated(call) == story.window if windows else call.model not in story.by_model for call in calls]
    own = [count or 0 for count, counts_here in zip(story.counts, is_own, strict=True) if counts_here]
    larger = [count for count in own if count > story.window]
    if not larger:
        raise Wrong(f"no answered request is larger than {story.window}")
    worst = max(larger)
    agree(finding, window=story.window, tokens=worst, calls=len(larger))
    same("the count at its step", worst, story.counts[step_of(story, finding, "step")])


def window_doubted(story: Story, finding: Finding) -> None:
    fired = [tokens for tokens in _triggers(story) if tokens > 0]
    if not fired or max(fired) >= story.window / 2:
        raise Wrong("not every automatic compaction fired below half of the window")
    agree(finding, window=story.window, low=min(fired), high=max(fired), compactions=len(fired))
    forced = all(_followed_refusal(story.session, place) for place in _of_this_window(story))
    if forced != ("after a refused request" in finding.sentence) or forced == ("set by hand" in finding.sentence):
        raise Wrong("each of them followed a refused request, or not, and the claim says otherwise")
    _says_who_asked(finding, [word for word, tokens in zip(_words(story), _triggers(story), strict=True) if tokens > 0])


def _says_who_asked(finding: Finding, words: list[str]) -> None:
    """Of how many of these compactions, by the recorder's words, the file does not say that they were automatic."""
    unsaid = sum(word not in _AUTOMATIC for word in words)
    same("unknown_trigger", finding.numbers.get("unknown_trigger", 0), unsaid)
    is_assumption_named = "taken as automatic" in finding.sentence and TRIGGER_NOT_RECORDED in finding.assumptions
    if is_assumption_named != bool(unsaid):
        raise Wrong(f"the file does not say of {unsaid} of them that they were automatic, and the claim says otherwise")
    if 0 < unsaid < len(words) and f"{unsaid:,} of them" not in finding.sentence:
        raise Wrong("the claim says of all of them what is so of some")


def _words(story: Story) -> list[str]:
    """The recorder's words for the compactions of `_triggers`."""
    return [story.session.compactions[place].trigger.lower() for place in _of_this_window(story)]


def _followed_refusal(session: Session, place: int) -> bool:
    """Did a request fail as too long between a recorded compaction and the last call before it."""
    item = session.compactions[place]
    since = max((call.at for call in session.calls if call.at < item.at), default=0)
    return item.trigger == "overflow" or any(since < at <= item.at for at in refused_before(session, place))


def _of_this_window(story: Story) -> list[int]:
    """The places of the compactions that nobody asked for, without those beside a call of a model that has another
    window."""
    of_this = []
    for place in (item.place for item in story.compactions if not item.is_manual):
        item = story.session.compactions[place]
        if item.trigger.lower() in _AT_ANY_SIZE:
            continue
        names = [call.model for call in story.session.calls if call.at < item.at][-1:]
        names += [call.model for call in story.session.calls if call.at >= item.at][:1]
        if not any(story.by_model.get(name) for name in names):
            of_this.append(place)
    return of_this


def _triggers(story: Story) -> list[int]:
    tokens = []
    for recorded in (story.session.compactions[place] for place in _of_this_window(story)):
        prompts = [call.prompt_tokens for call in story.session.calls if call.at < recorded.at and call.prompt_tokens]
        tokens.append(recorded.tokens_before or (prompts[-1] if prompts else 0))
    return tokens


def overflow(story: Story, finding: Finding) -> None:
    uncounted = [step for step, count in enumerate(story.counts) if count is None]
    over = [step for step in uncounted if story.is_over(step, story.sent[step])]
    if not over:
        raise Wrong("no request without a count is larger than the window")
    answered = sum(story.session.calls[step].response is not None for step in over)
    agree(finding, calls=len(over), first=over[0], last=over[-1], answered=answered)
    largest_over(story, finding, over)


def near_miss(story: Story, finding: Finding) -> None:
    near_the_window(story, finding)


def late(story: Story, finding: Finding) -> None:
    unanswered = [step for step, call in enumerate(story.session.calls) if call.response is None]
    came_too_late(story, finding, [step for step in unanswered if story.counts[step] is None])


def _exceeds_its_calls(story: Story, place: int) -> bool:
    """Is the recorder's figure more than any request can have had so soon after the counted one before it: a byte of
    what came since is at most a token, and attached files may have come along."""
    item = story.session.compactions[place]
    earlier = [call for call in story.session.calls if call.at < item.at and call.prompt_tokens]
    if not earlier or (place and earlier[-1].at < story.session.compactions[place - 1].at):
        return False
    parts = [part for event in story.session.events[earlier[-1].at : item.at] for part in event.parts]
    if any(isinstance(part, MediaPart) for part in parts):
        return False
    size = sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in parts)
    size += sum(part.opaque_bytes for part in parts if isinstance(part, ReasoningPart))
    room = (earlier[-1].prompt_tokens or 0) + (earlier[-1].output_tokens or 0) + size + _UNSEEN
    return (item.tokens_before or 0) > room


def counted_over(story: Story, finding: Finding) -> None:
    counts = {
        index: story.recorded(index).tokens_before or 0
        for index, item in enumerate(story.compactions)
        if item.step >= 0 and not _exceeds_its_calls(story, item.place)
    }
    over = [index for index, tokens in counts.items() if story.is_over(story.compaction(index).step, tokens)]
    if not over:
        raise Wrong("the agent never counted more than the window")
    window = story.windows[story.compaction(over[0]).step]
    agree(finding, compaction=over[0], tokens=counts[over[0]], window=window, compactions=over)


def refused(story: Story, finding: Finding) -> None:
    calls, places = story.session.calls, sorted(story.session.refused)
    if not places:
        raise Wrong("the file has no request that failed as too long")
    compacted = 0
    cuts = [
        (story.session.compactions[item.place].at, len(refused_before(story.session, item.place)))
        for item in story.compactions
    ]
    for nth, place in enumerate(places):
        later = [call.at for call in calls if call.at >= place]
        compacted += any(nth < before and (not later or cut <= later[0]) for cut, before in cuts)
    before = sum(call.at < places[0] for call in calls)
    agree(finding, requests=len(places), after=before - 1, compacted=compacted)
    limits, sizes = ({getattr(item, name) for item in story.session.refusals} for name in ("limit", "tokens"))
    if len(limits) == 1:
        agree(finding, limit=max(limits))
        same("stated", finding.numbers.get("stated", 0), max(sizes))
        if ("with room for an answer" in finding.sentence) != (0 < max(sizes) <= max(limits)):
            raise Wrong("only a request below the limit is refused for the room of its answer")
    elif {"limit", "stated"} & set(finding.numbers):
        raise Wrong("the provider stated no limit, or several")
    window = story.judgement.value
    same("window", finding.numbers.get("window", window), window)
    if "window" in finding.numbers and not number(finding, "limit") < window:
        raise Wrong("the limit is not below the window")
    if ("A compaction followed" in finding.sentence) != (compacted == len(places)):
        raise Wrong("a compaction followed each of them, or not, and the claim says otherwise")
    same("step", finding.step, max(0, before - 1))


def without_automatic(story: Story) -> list[int]:
    """Prompt tokens at every step had no automatic compaction been made: manual ones stay, and so do edits of a
    history that nothing automatic had compacted."""
    counted = {item.place: item for item in story.compactions}
    removed = {story.compaction(index).place for index in story.removed_automatic()}
    tokens = []
    for step, call in enumerate(story.session.calls):
        base, compacted, in_force = -1, False, set(story.places[: step + 1])
        for place in range(story.places[step] + 1):
            if place in removed or (place in counted and counted[place].is_manual):
                compacted = place in removed
            if not compacted and place in in_force:
                base = place
        tokens.append(story.price(step, *story.view_on(base, call.at)))
    return tokens


def _without(story: Story, finding: Finding) -> list[int]:
    removed = story.removed_automatic()
    same("compactions", number(finding, "compactions"), len(removed))
    if any(map(story.removes_nothing, removed)):
        raise Wrong("the file does not hold what a compaction took away, so nothing is known without it")
    words = (story.recorded(index).trigger.lower() for index in removed)
    _says_who_asked(finding, list(words))
    tokens = without_automatic(story)
    fullest_without(story, finding, tokens)
    says_what_is_uncounted(story, finding)
    peak = max(range(len(story.sent)), key=story.sent.__getitem__)
    if story.counts[peak] is None and max(tokens) < story.sent[peak]:
        raise Wrong("a request with them, itself only modelled, is larger than any without them")
    return tokens


def needless(story: Story, finding: Finding) -> None:
    tokens = _without(story, finding)
    if comes_near(story, tokens) or tight_calls(story, finding, tokens):
        raise Wrong("without them a request would have come near the window, or have left no room for an answer")
    if story.judgement.status is Status.DOUBTED:
        raise Wrong("the window is doubted")
    if story.session.refused or any(is_forced(story, index) for index in story.removed_automatic()):
        raise Wrong("the file has a request that failed as too long")
    if any(story.recorded(index).trigger == "requested" for index in story.removed_automatic()):
        raise Wrong("a request that failed as too long may have asked for a compaction")
    if sliding_moves(story) & set(story.removed_automatic()):
        raise Wrong("a window slides by design")


def needed(story: Story, finding: Finding) -> None:
    tokens = _without(story, finding)
    if not tight_calls(story, finding, tokens) and not comes_near(story, tokens):
        raise Wrong("without them no request would have come near the window, and each would have left room to answer")
    first = min(item.step for item in story.compactions if item.step >= 0 and not item.is_manual)
    could_wait(story, finding, tokens, first)


def could_wait(story: Story, finding: Finding, tokens: list[int], first: int) -> None:
    """How much later the first compaction could have come: up to the first request over the window."""
    agree(finding, first=first)
    rooms = answer_rooms(story, finding)
    later = [step for step in range(first, len(tokens)) if story.is_over(step, tokens[step] + rooms[step])]
    index = _index_of(story, first)
    refused = story.trace is None and (story.is_over(first, story.before(index)) or is_forced(story, index))
    if later and not refused:
        agree(finding, first_over=later[0], could_wait=later[0] - first)
    elif "could_wait" in finding.numbers:
        raise Wrong("it could not have come later, or no request after it would have been over the window")


def _index_of(story: Story, step: int) -> int:
    return next(index for index, item in enumerate(story.compactions) if item.step == step)


# What a clause of a request is known by: where it ends, characters (a Chinese one counts three times), the most shown.
_CLAUSES = re.compile(
    r"(?<=[.!?;:,])\s+|(?<=[。！？；：，])|\n|\s+(?:and|but|und|aber|et|mais|y|pero)\s+(?=(?:(?:please|you|we) )?(?:"
    r"never|always|do not|don['’]?t|only|avoid|make sure|must|nie|niemals|immer|nur|jamais|toujours|nunca|siempre)\b)",
    re.IGNORECASE,
)
_CLAUSE_CHARS, _SHOWN_CHARS, _FIRST_WIDE, _SHORTEST_QUOTE = 24, 48, 0x3000, 12
_RESTATED = 0.55  # of the words of each of its sentences in a summary that says a request in other words
_COURTESY = re.compile(
    r"^(?:(?:please|pls|kindly|(can|could|would|will) you( please)?|bitte|s['’]il (te|vous) pla[îi]t|por favor"
    r"|per favore)[,:]?\s+|请|請)",
    re.IGNORECASE,
)
_TYPED = re.compile(r"<command-(?:name|args)>(.*?)</command-(?:name|args)>")


def request_lost(story: Story, finding: Finding) -> None:
    """The words are searched in every message of every request since the first compaction that removed theirs."""
    message, quote = number(finding, "message"), _quoted(story, finding)
    removals = _removals(story, message)
    quoting = [
        index for index in removals if any(story.quotes(event, quote) for event in own_texts(story.recorded(index)))
    ]
    if not removals:
        raise Wrong("no compaction removed the message in the middle of its turn")
    first = story.first_call_after(removals[0])
    unread = _unread(story, quote)
    sealed = [index for index in removals if story.compaction(index).place in unread]
    agree(finding, compactions=removals, quoted_by=quoting, sealed=sealed, last_step_verbatim=first - 1)
    unquoted = [step for step in range(first, len(story.sent)) if not story.says(step, quote)]
    absent = [step for step in unquoted if story.places[step] not in unread]
    start, last = number(finding, "first_absent"), number(finding, "last_absent")
    in_turn = [step for step in absent if story.task_of(step) == message]
    if not in_turn:
        absent = unquoted
        in_turn = [step for step in absent if story.task_of(step) == message]
    is_known_absent = bool(in_turn) and story.places[in_turn[0]] not in unread
    lasting = _said_in_part(story, finding, message, removals, unread)
    if lasting != (is_known_absent and finding.severity == INFO):
        raise Wrong("the claim is graver or milder than what is known of the requests without the words")
    same("first_absent", start, in_turn[0] if in_turn else -1)
    same("step", finding.step, first if start < 0 else start)
    _names_what_goes_on(story, finding, message)
    if start < 0:
        return
    is_earlier = all(story.first_call_after(index) < start for index in quoting)
    is_unknown = story.places[start] in unread  # the sentence says that alone
    if (" still quoted " in finding.sentence) != (bool(quoting) and is_earlier and not is_unknown):
        raise Wrong("the words were quoted before they were lost, or not, and the sentence says otherwise")
    is_known = story.places[start] not in unread and not story.says(start - 1, quote)
    agree(finding, at_latest=is_known and any(story.first_call_after(index) < start for index in sealed))
    is_back = "is missing from" in finding.sentence
    if ("at the latest" in finding.sentence) != (number(finding, "at_latest") and not is_back):
        raise Wrong("the sentence says otherwise whether that is the latest step")
    end = start
    while end + 1 < len(story.sent) and end + 1 in absent:
        end += 1
    same("last_absent", last, end)
    _blamed(story, finding, removals, start, quote, unread)
    if "nothing has quoted" in finding.sentence and end + 1 < len(story.sent):
        raise Wrong(f"the request of step {end + 1} quotes it again")


def _quoted(story: Story, finding: Finding) -> str:
    """What a claim quotes of a request, without its courtesy: the message must begin with it, and ask for something."""
    message, quote = number(finding, "message"), str(number(finding, "quote"))
    own = [part_text(part) for part in story.session.events[message].parts]
    texts = [" ".join(text.split()) for text in own]
    typed = [" ".join(_TYPED.findall(text)) for text in texts]  # the name of a command and its arguments
    typed += [text.partition(">")[2] for text in texts if text.startswith(("<task>", "<user_message>", "<feedback>"))]
    if not quote or not any(_begins(text, quote.lstrip(_MARKS)) for text in (*own, *typed)):
        raise Wrong(f"message {message} does not begin with the quoted words, but for rules before them")
    if _asks_for_nothing(story, message):
        raise Wrong("the message only takes rules back, and asks for nothing")
    return _without_courtesy(quote)


def _names_what_goes_on(story: Story, finding: Finding, message: int) -> None:
    """Is the message named that began the turn of the loss, where that only asks to continue with the one before."""
    begun_by = story.request_of(finding.step)
    agree(finding, continued_by=-1 if begun_by == message else begun_by)
    between = story.session.events[message + 1 : begun_by + 1] if begun_by != message else ()
    if any(event.starts_turn() and is_long(event) for event in between):
        raise Wrong("a message in between says more than to go on")
    if ("asks only to continue with it" in finding.sentence) != (begun_by != message):
        raise Wrong("the message that began the turn asks only to continue, or does not; the sentence says otherwise")


def _said_in_part(story: Story, finding: Finding, message: int, removals: list[int], unread: set[int]) -> bool:
    """Does the claim name other words of the request that the summary has, or say that it may have it in others, and
    does every later summary of its turn have some of it, too, while the first words are gone."""
    passage, restated = str(finding.numbers["passage"]), bool(finding.numbers["restated"])
    _keeps_a_rule(story, finding, message)
    if restated != ("may say it in other words" in finding.sentence):
        raise Wrong("the sentence says otherwise whether the summary may say it in other words")
    if not passage and not restated:
        agree(finding, forgotten_by=-1, forgotten_at=-1)
        index, start = number(finding, "compaction"), number(finding, "first_absent")
        is_known = start >= 0 and story.places[start] not in unread and not number(finding, "by_edit")
        if is_known and index not in number(finding, "quoted_by") and _restates(story, index, message):
            raise Wrong("the summary may say the request in other words, and the claim does not say so")
        return False
    if passage and passage not in " ".join(" ".join(map(part_text, story.session.events[message].parts)).split()):
        raise Wrong("the request has no such words")
    blamed, last = number(finding, "compaction"), number(finding, "last_absent")
    if passage and not _repeats(story, blamed, passage):
        raise Wrong("the summary does not quote these words")
    if restated and not _restates(story, blamed, message):
        raise Wrong("the summary does not say each sentence of the request, not even in other words")
    later = [
        index
        for index in removals
        if story.first_call_after(blamed) < story.first_call_after(index) <= last
        and story.compaction(index).place not in unread
    ]
    forgetful = [index for index in later if not _has_part(story, index, message)]
    by = forgetful[0] if forgetful else -1
    agree(finding, forgotten_by=by, forgotten_at=story.first_call_after(by) if forgetful else -1)
    if ("no longer does" in finding.sentence) != bool(forgetful):
        raise Wrong("the sentence says otherwise whether a later summary has any of it")
    return not forgetful


def _asks_for_nothing(story: Story, message: int) -> bool:
    """Does every sentence of a message, but for thanks and the like, take back what the user demanded before."""
    said = [one for one in _sentences_of(story, message) if says_something(one) or kind_of(one, of_user=True)]
    earlier = [at for at in range(message + 1) if story.session.events[at].starts_turn()]
    return bool(said) and all(
        permits(one) and any(takes_back(one, rule) for at in earlier for rule in rules_of(story, at)) for one in said
    )


def _removals(story: Story, message: int) -> list[int]:
    """The compactions that took a message away in the middle of its turn."""
    return [
        index
        for index in range(len(story.compactions))
        if (call := story.first_call_after(index)) >= 0
        and story.task_of(call) == message
        and all(_takes_away(story, index, message) for index in (index, _in_force(story, call)))
        and not holds(story.views[call][0], message)
    ]


def part_lost(story: Story, finding: Finding) -> None:
    """The sentences of a message that ask for something are searched in every later request of its turn."""
    message = number(finding, "message")
    wishes = [
        one
        for one in dict.fromkeys(_sentences_of(story, message))
        if kind_of(one, of_user=True) == REQUEST and says_something(one) and _weight(one) >= _SHORTEST_QUOTE
    ]
    removals, later = _removals(story, message), _rest_of_turn(story, message)
    lost = _lost_from(story, later, [(one, _without_courtesy(one)) for one in wishes])
    if not 0 < len(lost) < len(wishes):
        raise Wrong("a later request of the turn has each of its sentences, or may have it, or none has any")
    step, part = min(lost, key=lambda item: item[0])
    if not part.startswith(str(number(finding, "quote"))) or not number(finding, "quote"):
        raise Wrong("that is not the sentence that was lost first")
    agree(finding, is_whole=finding.numbers["quote"] == part, last=later[-1])
    _says_how_much(finding, part)
    same("count", finding.count, len(lost))
    same("compaction", number(finding, "compaction"), [i for i in removals if story.first_call_after(i) <= step][-1])
    same("step", finding.step, step)


def _rest_of_turn(story: Story, message: int) -> list[int]:
    """The steps of a message's turn from the first on that a compaction left without it."""
    removals = _removals(story, message)
    if not removals:
        raise Wrong("no compaction removed the message in the middle of its turn")
    turn = [step for step in range(len(story.sent)) if story.task_of(step) == message]
    return [step for step in turn if step >= story.first_call_after(removals[0])]


def _lost_from(story: Story, later: list[int], said: list[tuple[str, str]]) -> list[tuple[int, str]]:
    """The sentences, each with the words that it is looked for by, that the last of some requests have not, with the
    first of these."""
    lost = []
    for sentence, words in said:
        silent = later[:]
        while silent and not _tells(story, silent[-1], sentence, words):
            silent.pop()
        lost += [(later[len(silent)], sentence)] if len(silent) < len(later) else []
    return lost


def rule_lost(story: Story, finding: Finding) -> None:
    """The rules of a message are searched in every later request of its turn."""
    message = number(finding, "message")
    removals, later = _removals(story, message), _rest_of_turn(story, message)
    said = _sentences_of(story, message)
    if not any(one and _rule_in(one) != one and not _lifts_before(said[:at], one) for at, one in enumerate(said)):
        raise Wrong("the message asks for nothing besides its rules")
    lost = _lost_from(story, later, [(rule, rule) for rule in rules_of(story, message)])
    lost = [(step, rule) for step, rule in lost if not is_withdrawn(story, message, rule, step)]
    if not lost:
        raise Wrong("a later request of the turn has each of its rules, or may have it")
    step, rule = min(lost, key=lambda item: item[0])
    if not rule.startswith(str(number(finding, "rule"))) or not number(finding, "rule"):
        raise Wrong("that is not the rule that was lost first")
    agree(finding, is_whole=finding.numbers["rule"] == rule, last=later[-1])
    _says_how_much(finding, rule)
    same("count", finding.count, len(lost))
    same("compaction", number(finding, "compaction"), [i for i in removals if story.first_call_after(i) <= step][-1])
    same("step", finding.step, step)


def todo_lost(story: Story, finding: Finding) -> None:
    """The todos that were open at a compaction and that it took away are searched in every request since."""
    message, index = number(finding, "message"), number(finding, "compaction")
    group = next((group for group in _todos_taken(story) if any(todo.message == message for todo in group)), [])
    lost: list[tuple[int, int, OpenTodo]] = []
    for todo in group:
        silent = [step for step in range(len(story.sent)) if story.session.calls[step].at > todo.message]
        while silent and not _tells(story, silent[-1], todo.text):
            silent.pop()
        first = silent[-1] + 1 if silent else len(story.sent)
        taking = [
            place
            for place in range(len(story.compactions))
            if 0 <= story.compaction(place).step <= first
            and _takes_away(story, place, todo.message)
            and not 0 <= todo.later < story.recorded(place).at
        ]
        if taking and first < len(story.sent) and not 0 <= todo.later < story.session.calls[first].at:
            lost.append((first, taking[-1], todo))
    if not lost:
        raise Wrong(
            "no todo of that message was open at a compaction that took it away, or the last request may have it"
        )
    step, taken, todo = min(lost, key=lambda item: item[:2])
    same("step", finding.step, step)
    same("compaction", index, taken)
    if not todo.text.startswith(str(number(finding, "todo"))) or not number(finding, "todo"):
        raise Wrong("that is not the todo that was lost first")
    agree(finding, message=todo.message, is_whole=finding.numbers["todo"] == todo.text, later=todo.later)
    if is_closed(todo.text, story.session.events[: story.recorded(taken).at]):
        raise Wrong("the agent had closed that todo before the compaction")
    same("count", finding.count, sum(item[:2] == (step, taken) for item in lost))
    if (finding.severity == INFO) != (todo.later >= 0):
        raise Wrong("a loss that a later update may have made up for is a note, and no other one")


def _todos_taken(story: Story) -> Iterator[list[OpenTodo]]:
    """For each compaction the todos that were open before it and that it, and none before it, took away, as far as they
    are long enough to be known again."""
    taken: set[tuple[int, str]] = set()
    for place in range(len(story.compactions)):
        at = story.recorded(place).at
        group: dict[str, OpenTodo] = {}
        for todo in _open_before(story, at) if story.compaction(place).step >= 0 else []:
            is_known = _weight(todo.text) >= _SHORTEST_QUOTE and says_something(todo.text)
            if is_known and _takes_away(story, place, todo.message) and (todo.message, todo.text) not in taken:
                taken.add((todo.message, todo.text))
                group.setdefault(todo.text, todo)
        yield [todo._replace(later=_updated_at(story, todo, at)) for todo in list(group.values())[:_MOST_TODOS]]


def _open_before(story: Story, at: int) -> list[OpenTodo]:
    todos = Todos()
    for index, event in enumerate(story.session.events[:at]):
        todos.read(index, event)
    return todos.open


def _updated_at(story: Story, todo: OpenTodo, at: int) -> int:
    """The next message that writes, closes or renames a todo that was open before event `at`, -1: none."""
    todos = Todos()
    said = [index for index, event in enumerate(story.session.events) if todo in todos.read(index, event)]
    return next((index for index in said if index >= at), -1)


def _says_how_much(finding: Finding, rule: str) -> None:
    """Is a summary said to paraphrase not all of a rule that has several instructions, and none of any other."""
    if ("paraphrases all of it" in finding.sentence) != (len(instructions_in(rule)) > 1):
        raise Wrong("a summary may say one instruction of several, and of a rule with one it says all or nothing")


def earlier_rule_lost(story: Story, finding: Finding) -> None:
    """The rules of every turn that was over when a compaction took them away are searched in all requests since."""
    lost: dict[str, tuple[bool, int, int, str]] = {}
    messages, is_all = _looked_up(story)
    for message in messages:
        turn = [step for step in range(len(story.sent)) if story.task_of(step) == message]
        for rule in rules_of(story, message):
            silent = [step for step in range(len(story.sent)) if story.session.calls[step].at > message]
            while silent and not _tells(story, silent[-1], rule):
                silent.pop()
            first = silent[-1] + 1 if silent else len(story.sent)
            taking = [
                index
                for index in range(len(story.compactions))
                if 0 <= story.compaction(index).step <= first and _takes_away(story, index, message)
            ]
            is_gone = turn[-1] < first < len(story.sent) and taking
            if outlasts_its_turn(rule) and is_gone and not is_withdrawn(story, message, rule, first):
                lost.setdefault(spoken(rule), (not is_universal(rule), first, message, rule))
    if not lost:
        raise Wrong("the last request has every rule of an earlier turn, or may have it")
    is_open, step, message, rule = min(lost.values(), key=lambda item: item[:2])
    if not rule.startswith(str(number(finding, "rule"))) or not number(finding, "rule"):
        raise Wrong("that is not the rule that is named first")
    agree(finding, message=message, is_whole=finding.numbers["rule"] == rule, is_universal=not is_open)
    _says_how_much(finding, rule)
    if is_open != (finding.severity == INFO) or is_open != ("It does not say whether" in finding.sentence):
        raise Wrong("the rule says that it holds for later turns, or does not, and the claim says otherwise")
    fired = [i for i in range(len(story.compactions)) if 0 <= story.compaction(i).step <= step]
    same("compaction", number(finding, "compaction"), [i for i in fired if _takes_away(story, i, message)][-1])
    same("count", finding.count, len(lost))
    if ("same holds for at least" in finding.sentence) != (len(lost) > 1 and not is_all):
        raise Wrong("more messages state rules than are searched, or not, and the claim says otherwise")
    same("step", finding.step, step)


def _looked_up(story: Story) -> tuple[list[int], bool]:
    """The messages whose rules are looked for: every one that a compaction took away in its turn, and of the others
    with rules that one did later the first ones; and whether these are surely all."""
    begun = dict.fromkeys(story.task_of(step) for step in range(len(story.sent)))
    in_turn = [message for message in begun if message >= 0 and _removals(story, message)]
    later = [
        message
        for message in begun
        if message >= 0
        and message not in in_turn
        and any(item.step >= 0 and _takes_away(story, i, message) for i, item in enumerate(story.compactions))
        and rules_of(story, message)
    ]
    return sorted([*in_turn, *later[:_MOST_MESSAGES]]), len(later) < _MOST_MESSAGES


def _sentences_of(story: Story, message: int) -> list[str]:
    """The sentences of what a person wrote, or typed as a command."""
    written = [text for part in story.session.events[message].parts if (text := part_text(part).strip())]
    asked = written[0] if written else ""
    return [" ".join(one.split()) for one in split_sentences(" ".join(_TYPED.findall(asked)) or asked)]


def rules_of(story: Story, message: int) -> list[str]:
    """The first rules of a message that the system prompt has not."""
    fixed = Event(Role.SYSTEM, story.session.system or ())
    said = _sentences_of(story, message)
    stated = [(at, rule) for at, one in enumerate(said) if (rule := _rule_in(one))]
    rules = dict.fromkeys(rule for at, rule in stated if not any(takes_back(one, rule) for one in said[at + 1 :]))
    known = [rule for rule in rules if _weight(rule) >= _SHORTEST_QUOTE and says_something(rule)][:_MOST_RULES]
    return [rule for rule in known if not story.quotes(fixed, rule.strip(END_MARKS))]


def _rule_in(sentence: str) -> str:
    """A sentence that states a rule, without what it asks for before it where the rule is one by itself."""
    if kind_of(sentence) != RULE:
        return ""
    stating = [clause for clause in _CLAUSES.split(sentence) if directs(clause)]
    if not stating:
        return ""
    rest = _LINK.sub("", sentence[sentence.index(stating[0]) :])
    depends = _DEPENDS.match(sentence) is not None
    return sentence if depends or not says_something(rest) or _weight(rest) < _SHORTEST_QUOTE else rest


def is_withdrawn(story: Story, message: int, rule: str, step: int) -> bool:
    """Did the user take a rule back between its message and the call of a step."""
    since = [event for event in story.session.events[message + 1 : story.session.calls[step].at] if event.starts_turn()]
    said = [one for event in since for part in event.parts for one in split_sentences(part_text(part))]
    return any(withdraws(event, rule) for event in since) or any(plainly_lifts(one, rule) for one in said)


def _tells(story: Story, step: int, rule: str, words: str = "") -> bool:
    """May a request have a rule: a message quotes it, or what the compaction before it put in says it in other words,
    in another script, or cannot be read."""
    plain = (words or rule).strip(END_MARKS)
    place = story.places[step]
    if story.says(step, plain) or place in _unread(story, plain):
        return True
    if place < 0:
        return False
    said = ["\n".join(map(part_text, event.parts)) for event in own_texts(story.session.compactions[place])]
    return _is_foreign("\n".join(said), rule) or any(conveys(text, rule) for text in said)


def _begins(text: str, quote: str) -> bool:
    """Does a text begin with some words, or have them behind sentences and lines that state rules alone."""
    if " ".join(text.split()).lstrip(_MARKS).startswith(quote):
        return True
    sentences = [folded for one in split_sentences(text) if (folded := " ".join(one.split()))]
    place = next((at for at in range(1, len(sentences)) if " ".join(sentences[at:]).startswith(quote)), 0)
    before = sentences[:place]
    return place > 0 and all(
        _states_rules_alone(one) or _lifts_before(before[:at], one) for at, one in enumerate(before)
    )


def _lifts_before(before: list[str], said: str) -> bool:
    """Does a sentence only take back a rule of one of those before it."""
    return permits(said) and any(takes_back(said, rule) for one in before if (rule := _rule_in(one)))


def _states_rules_alone(sentence: str) -> bool:
    return all(kind_of(clause.strip(_MARKS)) == RULE for clause in _CLAUSES.split(sentence) if clause.strip())


def _without_courtesy(quote: str) -> str:
    """A quotation as it is looked for: without the "please" at its beginning, where enough is left."""
    plain = _COURTESY.sub("", quote)
    return plain if _weight(plain) >= _SHORTEST_QUOTE else quote


def _keeps_a_rule(story: Story, finding: Finding, message: int) -> None:
    """Is what the summary is said to keep of a request a rule that it states, or part of what it asks for."""
    rule, passage = str(finding.numbers["kept_rule"]), str(finding.numbers["passage"])
    if bool(rule) != ("keeps the rule" in finding.sentence):
        raise Wrong("the sentence says otherwise whether the summary keeps a rule")
    rules, tasks = _parted(story, message)
    is_of_rule, is_asked = (any(clause.startswith(rule) for clause in part) for part in (rules, tasks))
    if rule and (not is_of_rule or is_asked or not _repeats(story, number(finding, "compaction"), rule)):
        raise Wrong("the request states no such rule, or the summary does not quote it")
    if passage and tasks and not any(clause.startswith(passage) for clause in tasks):
        raise Wrong("what the summary quotes is a rule, and nothing of what was asked for")


def _parted(story: Story, message: int) -> tuple[list[str], list[str]]:
    """The clauses of a message that state rules, and the others; where all do, these are what was asked for."""
    text = "\n".join(map(part_text, story.session.events[message].parts))
    clauses = [" ".join(clause.split()).strip("\"'") for clause in _CLAUSES.split(text)]
    clauses = [clause for clause in clauses if _weight(clause) >= _SHORTEST_QUOTE]
    rules = [clause for clause in clauses if kind_of(clause) == RULE]
    tasks = [clause for clause in clauses if clause not in rules]
    return (rules, tasks) if tasks else ([], clauses)


def _weight(clause: str) -> int:
    return sum(3 if ord(char) > _FIRST_WIDE else 1 for char in clause)


def _repeats(story: Story, index: int, words: str) -> bool:
    """Does what a compaction put into the context quote some words."""
    return any(story.quotes(event, words) for event in own_texts(story.recorded(index)))


def _restates(story: Story, index: int, message: int) -> bool:
    """Does it say what a message says in other words, sentence by sentence, as far as sentences are long enough."""
    asked = next(text for part in story.session.events[message].parts if (text := part_text(part).strip()))
    asked = " ".join(_TYPED.findall(asked)) or asked
    said = ["\n".join(map(part_text, event.parts)) for event in own_texts(story.recorded(index))]
    sentences = split_sentences(asked)
    sentences = [
        one
        for at, one in enumerate(sentences)
        if not _states_rules_alone(one) and not _lifts_before(sentences[:at], one)
    ] or sentences
    if _is_foreign("\n".join(said), "\n".join(sentences)):
        return True
    long = [one for one in sentences if paraphrases(one, one)]
    short = [one for one in sentences if len(content_words(one)) > 1]
    for text in said:
        says = [paraphrases(text, one, _RESTATED) for one in long] or [conveys(text, one) for one in short]
        if says and all(says):
            return True
    return False


def _is_foreign(text: str, asked: str) -> bool:
    """Is a text in another language than some words, or in letters that are not theirs, and long enough to say them."""
    alphas = [[letter for letter in one if letter.isalpha()] for one in (text, asked)]
    if not alphas[1] or 3 * len(alphas[0]) < len(alphas[1]):
        return False
    shares = [sum(ord(letter) > 0x24F for letter in letters) / len(letters) for letters in alphas]
    if shares[1] < 0.05 and _is_foreign_in_its_middle(text, len(alphas[1])):
        return True
    if max(shares) < 0.05:
        counts = [common_words(one) for one in (text, asked)]
        first, second = (max(one, key=one.__getitem__) for one in counts)
        is_other = counts[0][first] > 3 * counts[0][second] and counts[1][second] > 3 * counts[1][first]
        return (is_other and len(alphas[0]) >= len(alphas[1])) or _is_in_another_language_within(text, asked)
    return (shares[0] < 0.05 and shares[1] >= 0.5) or (shares[1] < 0.05 and shares[0] >= 0.5)


def _is_foreign_in_its_middle(text: str, asked: int) -> bool:
    """Is a text in foreign letters but for Latin sentences before and behind, which a client put there, and do these
    letters suffice to say what has so many."""
    middle = [[letter > "\u024f" for letter in one if letter.isalpha()] for one in split_sentences(text)]
    total = sum(map(len, middle))
    for end in (0, -1):
        while middle and (not middle[end] or 2 * sum(middle[end]) < len(middle[end])):
            middle.pop(end)
    foreign, size = sum(map(sum, middle)), sum(map(len, middle))
    return foreign > 0 and 2 * foreign >= size and 3 * foreign >= asked and total - size <= _LONGEST_FRAME


def _is_in_another_language_within(text: str, asked: str) -> bool:
    """Is a text in another language than some words, but for sentences before and behind, and long enough."""
    lines, own, letters = (
        split_sentences(text),
        _spoken_in(asked),
        [sum(map(str.isalpha, one)) for one in (text, asked)],
    )
    while lines and own and _spoken_in(lines[0]) in ("", own):
        lines.pop(0)
    while lines and own and _spoken_in(lines[-1]) in ("", own):
        lines.pop()
    middle = "\n".join(lines) if own else ""
    size, counts, of_words = sum(map(str.isalpha, middle)), common_words(middle), common_words(asked)
    other, mine = (max(one, key=one.__getitem__) for one in (counts, of_words))
    is_other = counts[other] > 3 * counts[mine] and of_words[mine] > 3 * of_words[other]
    return is_other and counts[other] > 5 and size >= letters[1] and letters[0] - size <= _LONGEST_FRAME


def _spoken_in(text: str) -> str:
    """The language of which a text has two common words or more, and more than of any other, "": none."""
    counts = common_words(text)
    most = max(counts.values())
    return (
        next(iter(one for one in counts if counts[one] == most))
        if most > 1 and list(counts.values()).count(most) == 1
        else ""
    )


def _has_part(story: Story, index: int, message: int) -> bool:
    """Does a compaction quote a clause of a message, or say the message in other words."""
    asked = [clause.strip(" \"'.,;:!?…。，；：！？、") for clause in _parted(story, message)[1]]
    shown = [clause[:_SHOWN_CHARS] for clause in asked if _weight(clause) >= _CLAUSE_CHARS]
    return any(_repeats(story, index, clause) for clause in shown) or _restates(story, index, message)


def _unread(story: Story, quote: str) -> set[int]:
    """The places of compactions whose summary cannot be read, though what was there to be summarised had the words."""
    unread: set[int] = set()
    for place, item in enumerate(story.session.compactions):
        before, whose = story.view_on(place - 1, item.at)
        had = any(story.quotes(event, quote) for event in materialise(before, story.session, whose))
        if _cannot_be_read(item) and (had or place - 1 in unread):
            unread.add(place)
        after = materialise(item.base, story.session, place)
        if any(story.quotes(event, quote) for event in after):
            unread.discard(place)
    return unread


def _in_force(story: Story, call: int) -> int:
    """The compaction, by index, that a call is the first to be built on; -1: none that counts."""
    return next((index for index, item in enumerate(story.compactions) if item.step == call), -1)


def _takes_away(story: Story, index: int, message: int) -> bool:
    return index >= 0 and message < story.recorded(index).at and not holds(story.recorded(index).base, message)


def _blamed(story: Story, finding: Finding, removals: list[int], start: int, quote: str, unread: set[int]) -> None:
    """The compaction before the first request without the words, that had them from none before it and gave them on to
    none after it."""
    blamed = story.compaction(number(finding, "compaction"))
    calls = {index: story.first_call_after(index) for index in removals}
    latest = max(call for call in calls.values() if call <= start)
    group = [index for index in removals if calls[index] == latest]
    by_edit = _leaves(story, group[-1], quote)
    agree(finding, by_edit=by_edit)
    if by_edit != ("an edit of the history after" in finding.sentence):
        raise Wrong("the claim names another cause in its sentence than in its data")
    if by_edit:
        same("compaction", number(finding, "compaction"), group[-1])
        return
    if story.compactions.index(blamed) not in group:
        raise Wrong("another compaction came between it and the first request without the words")
    place = group.index(story.compactions.index(blamed))
    leaving = [_leaves(story, index, quote) for index in group]
    if any(leaving[place:]):
        raise Wrong("the words were still there after it")
    lost_before = [index for index, left in zip(group[:place], leaving[:place], strict=True) if not left]
    since = max((position for position in range(place) if leaving[position]), default=-1)
    if any(group.index(index) > since and story.compaction(index).place not in unread for index in lost_before):
        raise Wrong("the words were lost before it")


def _leaves(story: Story, index: int, quote: str) -> bool:
    """Does the history that a compaction leaves hold the words."""
    item = story.recorded(index)
    return any(
        story.quotes(event, quote) for event in materialise(item.base, story.session, story.compaction(index).place)
    )


def grown(story: Story, finding: Finding) -> None:
    index = number(finding, "compaction")
    larger = {
        other: story.sent[item.step] - story.before(other)
        for other, item in enumerate(story.compactions)
        if item.step >= 0 and _outgrows_the_model(story, other)
    }
    if index not in larger:
        raise Wrong("the request after it is smaller, or not larger by more than what is modelled of it may err")
    if larger[index] < max(larger.values()):
        raise Wrong("another compaction made the request larger by more")
    before, after = story.before(index), story.sent[story.compaction(index).step]
    agree(finding, before=before, after=after)
    same("count", finding.count, len(larger))
    if ("made the request larger" in finding.sentence) != (after > before):
        raise Wrong("the request after it is larger, or not, and the claim says otherwise")


def _outgrows_the_model(story: Story, index: int) -> bool:
    """Is the counted request after a compaction no smaller than the one before it, the larger of half and a thousand
    tokens allowed for what is modelled of that."""
    step, before = story.compaction(index).step, story.before(index)
    if story.sent[step] < before or before <= 0:
        return False
    if story.session.usage_ratio is not None:
        return True
    if is_forced(story, index):
        return False
    earlier = [item.step for item in story.compactions[:index] if 0 <= item.step < step]
    counted = [story.counts[at] for at in range(max(earlier, default=0), step)]
    last = next(filter(None, reversed(counted)), None)
    known = story.recorded(index).tokens_before or last
    if story.counts[step] is None or known is None or story.sent[step] < (last or 0):
        return False
    return before == known or story.sent[step] - before >= max(1_000, 0.5 * (before - known))


def summary_not_kept(story: Story, finding: Finding) -> None:
    history_is_back(story, finding)
    index, again_step = number(finding, "compaction"), number(finding, "again_step")
    step = story.compaction(index).step
    following = any(item.step == again_step for item in story.compactions)
    between = set(story.places[step : again_step + (not following)])
    if len(between) > 1:
        raise Wrong("the history was rewritten between them, which explains the request")


def loop(story: Story, finding: Finding) -> None:
    at_consecutive_steps(story, finding)


def sliding_window(story: Story, finding: Finding) -> None:
    drops_at_every_call(story, finding)


def thrash(story: Story, finding: Finding) -> None:
    in_quick_succession(story, finding)


def sealed_summary(story: Story, finding: Finding) -> None:
    _every(story, finding, _is_sealed, "sealed")


def fallback_summary(story: Story, finding: Finding) -> None:
    _every(story, finding, lambda story, index: story.recorded(index).kind == "fallback", "mechanical")


def empty_summary(story: Story, finding: Finding) -> None:
    def is_empty(story: Story, index: int) -> bool:
        item = story.recorded(index)
        messages = item.messages
        readable = bool(messages) and item.kind.startswith("summary") and not _is_sealed(story, index)
        silent = readable and not any(part_text(part) for message in messages for part in message.parts)
        return silent or item.kind == "empty"

    _every(story, finding, is_empty, "empty")


def _every(story: Story, finding: Finding, test: Callable[[Story, int], bool], word: str) -> None:
    real = [index for index, item in enumerate(story.compactions) if item.step >= 0 and test(story, index)]
    agree(finding, compactions=real)
    if not real:
        raise Wrong(f"no summary is {word}")


def _is_sealed(story: Story, index: int) -> bool:
    return _cannot_be_read(story.recorded(index))


def _cannot_be_read(item: RecordedCompaction) -> bool:
    return item.kind == "opaque" or any(map(_is_encrypted, item.messages))


def _is_encrypted(message: Event) -> bool:
    """Is all that a message says encrypted."""
    sealed = any(isinstance(part, ReasoningPart) and part.opaque_bytes for part in message.parts)
    return sealed and not any(part_text(part) for part in message.parts)


def silent_truncation(story: Story, finding: Finding) -> None:
    step = step_of(story, finding, "step")
    after = story.counts[step]
    earlier = [place for place in range(step) if story.counts[place] is not None]
    before = story.counts[earlier[-1]] if earlier else None
    if before is None or after is None:
        raise Wrong("the provider did not count both requests")
    added = sum(lexical_tokens(part_text(part)) for event in _since(story, earlier[-1], step) for part in event.parts)
    agree(finding, before=before, after=after, added=added)
    if after >= before:
        raise Wrong("the count did not fall")
    if story.session.calls[step].at <= story.session.calls[earlier[-1]].at:
        raise Wrong("the log did not grow")
    if story.places[step] != story.places[earlier[-1]]:
        raise Wrong("a recorded compaction explains it")
    same("count", finding.count, sum(1 for _ in _falls(story)))
    if before + added - after < max(_falls(story)):
        raise Wrong("another fall is deeper")


def _falls(story: Story) -> Iterator[int]:
    """By how many tokens each counted request is smaller than the one before it and what was added since, where neither
    a compaction, another model or way of counting, nor reasoning that a new turn leaves out explains it."""
    calls, counts = story.session.calls, story.counts
    counted = [step for step, count in enumerate(counts) if count is not None]
    recounted, repeated = {jump.step for jump in count_changes(story.ledger)}, set(_repeated(story))
    turns = [story.request_of(step) for step in range(len(calls))]
    any_output = any(call.output_tokens is not None for call in calls)
    for first, last in pairwise(counted):
        before, after = counts[first] or 0, counts[last] or 0
        is_continued = story.places[first] == story.places[last] and calls[first].model == calls[last].model
        if not is_continued or after >= before or calls[last].at <= calls[first].at:
            continue
        missing = before + _text_tokens(_since(story, first, last)) - after
        outputs = [call.output_tokens for call, turn in zip(calls, turns, strict=True) if turn == turns[first]]
        if turns[first] != turns[last] and (
            (any_output and None in outputs)
            or missing <= sum(call.output_tokens or 0 for call in calls[turns.index(turns[first]) : last])
        ):
            continue
        if missing >= max(2_000, before // 10) and first not in repeated and last not in recounted:
            yield missing


def usage_in_characters(story: Story, finding: Finding) -> None:
    same, compared = story.in_characters
    agree(finding, same=len(same), compared=compared, least_bytes=400)
    if not same or finding.step != same[0]:
        raise Wrong("it is not the first count that grew by a token for each byte")


def usage_repeated(story: Story, finding: Finding) -> None:
    counted = [step for step, count in enumerate(story.counts) if count is not None]
    repeated = _repeated(story)
    agree(finding, repeated=len(repeated), counted=len(counted))
    if not repeated or finding.step != repeated[0]:
        raise Wrong("it is not the first count that repeats the one before")


def _repeated(story: Story) -> list[int]:
    """The steps whose count is that of the counted call before, though the requests differ."""
    counted = [step for step, count in enumerate(story.counts) if count is not None]
    return [
        after
        for before, after in pairwise(counted)
        if story.counts[before] == story.counts[after]
        and _text_tokens(_since(story, before, after)) > 20
        and (
            story.places[before] == story.places[after]
            or abs(_sent_text(story, after) - _sent_text(story, before)) > 20
        )
    ]


def results_cleared(story: Story, finding: Finding) -> None:
    """Which results are shorter in a request: each is that of the call whose id it has, by the texts of both."""
    edited: dict[int, float] = {}
    recorded: set[int] = set()
    left: dict[int, int] = {}
    saved = cuts = 0
    for step, place in enumerate(story.places):
        is_first = place >= 0 and (step == 0 or place != story.places[step - 1])
        for part in _edited(story.session.compactions[place]) if is_first else ():
            whole = story.session.events[part.event]
            if not _answered(part.message) <= _answered(whole):
                raise Wrong(f"message {part.event} has the result of another call than the one sent at step {step}")
            removed = left.get(part.event, _result_bytes(whole)) - _result_bytes(part.message)
            if removed > 0:
                left[part.event] = _result_bytes(part.message)
                cuts += 1
                saved += removed
                size = sum(len(part_text(one).encode("utf-8", "surrogatepass")) for one in whole.parts)
                tokens = int(story.attribution.tokens[part.event]) * removed / size
                edited[step] = edited.get(step, 0) + tokens
                recorded |= {step} if story.session.compactions[place].evidence != "inferred" else set()
    tokens = sum(map(round, edited.values()))
    if tokens < _LEAST_CLEARED and not recorded:
        raise Wrong("no result is shorter in a later request, or hardly so")
    agree(finding, messages=len(left), cuts=cuts, bytes=saved, tokens=tokens, edits=len(edited))
    agree(finding, recorded=len(recorded))
    same("the first step", finding.step, min(edited))
    same("its steps", list(finding.steps), sorted(edited)[: len(finding.steps)])


def asked_again(story: Story, finding: Finding) -> None:
    """Results of earlier calls that came again and that no message of the request before them still had."""
    moves = sliding_moves(story)
    lasting = [index for index in range(len(story.compactions)) if story.first_call_after(index) >= 0]
    lasting = [index for index in lasting if index not in moves and story.compaction(index).step >= 0]
    ats = [story.recorded(index).at for index in lasting]
    places = [item.at for item in story.session.compactions]
    seen: dict[tuple[object, ...], list[tuple[int, int, int]]] = {}
    for _, event, key, size in _answered_calls(story):
        if size < _LARGE_RESULT:
            continue
        since = sum(at <= event for at in ats)
        share = int(story.attribution.tokens[event]) * size // max(1, _text_bytes(story.session.events[event]))
        seen.setdefault(key, []).append((since, event, share))
    again: dict[int, list[int]] = {}
    for came in seen.values():
        if len({since for since, _, _ in came}) < len(came):  # it was asked for again and again
            continue
        for later, (since, event, share) in enumerate(came[1:], start=1):
            place = sum(at <= event for at in places) - 1
            if not any(_still_has(story, place, old) for _, old, _ in came[:later]):
                again.setdefault(lasting[since - 1], []).append(share)
    real = {index: shares for index, shares in again.items() if len(shares) >= 3 and sum(shares) >= 2_000}
    index = number(finding, "compaction")
    if index not in real or sum(real[index]) < max(map(sum, real.values())):
        raise Wrong("fewer results came again after it, or after another compaction more")
    agree(finding, results=len(real[index]), tokens=sum(real[index]), compactions=sorted(real))
    same("step", finding.step, story.compaction(index).step)


def repeated_call(story: Story, finding: Finding) -> None:
    """Results one behind the other, or some in turn, that are the same as before, and so are their calls."""
    answered = list(_answered_calls(story))
    keys, sizes = [key for _, _, key, _ in answered], [size for _, _, _, size in answered]
    long: list[tuple[int, int, int, int]] = []  # how often, the first call, the last one, how many in turn
    for cycle in range(1, _LONGEST_CYCLE + 1):
        place = 0
        while place + cycle < len(keys):
            end = place + cycle
            while end < len(keys) and keys[end] == keys[end - cycle]:
                end += 1
            rounds, turn = (end - place) // cycle, keys[place : place + cycle]
            is_shorter = any(turn == turn[:size] * (cycle // size) for size in range(1, cycle) if cycle % size == 0)
            if rounds >= _FEWEST_IN_A_ROW and not is_shorter and max(sizes[place : place + cycle]) >= _SMALLEST_RESULT:
                long.append((rounds, answered[place][0], answered[place + rounds * cycle - 1][0], cycle))
            place = max(place + 1, end - cycle + 1)
    if not long:
        raise Wrong("no calls were made so often in a row, or in turn, with the same results")
    steps = {called: max(0, sum(call.at <= called for call in story.session.calls) - 1) for called, *_ in answered}
    rounds, first, last, cycle = max(long, key=lambda run: (run[0], -steps[run[1]]))
    agree(finding, rounds=rounds, cycle=cycle, first=steps[first], last=steps[last], runs=len(long))
    if (finding.severity == INFO) != (rounds < 2 * _FEWEST_IN_A_ROW):
        raise Wrong("the claim is graver or milder than its count")
    same("step", finding.step, steps[first])


def _answered_calls(story: Story) -> Iterator[tuple[int, int, tuple[str, ...], int]]:
    """The results whose call is known: the messages of both, the tool with both texts, and the result's bytes."""
    asked: dict[str, list[tuple[int, str]]] = {}
    for event, message in enumerate(story.session.events):
        for part in message.parts:
            text = part_text(part)
            if isinstance(part, ToolCallPart):
                asked.setdefault(part.id or f"by name: {part.name}", []).append((event, text))
            elif isinstance(part, ToolResultPart):
                waiting = asked.get(part.call_id) or asked.get(f"by name: {part.name}") or []
                if not waiting:
                    continue
                called, words = waiting.pop(0)
                yield called, event, (part.name, text, words), len(text.encode("utf-8", "surrogatepass"))


def _still_has(story: Story, place: int, event: int) -> bool:
    """Has a recorded compaction left a result in the context, as it was in the log or written anew."""
    item = story.session.compactions[place]
    if item.kind == "edit" and (item.tokens_before or 0) <= 0:  # cleared or repeated: not judged
        return True
    if holds(item.base, event) or any(isinstance(part, Rewritten) and part.event == event for part in item.base):
        return True
    ids = _answered(story.session.events[event])
    return any(_answered(message) & ids for message in own_texts(item))


def _text_bytes(event: Event) -> int:
    return sum(len(part_text(part).encode("utf-8", "surrogatepass")) for part in event.parts)


def _edited(item: RecordedCompaction) -> list[Rewritten]:
    """The messages that an edit changed: one that the file records, or that only the requests show."""
    is_counted = item.kind != "edit" or (item.tokens_before or 0) > 0
    if is_counted or (item.evidence == "inferred" and (item.trigger or item.note)):
        return []
    return [part for part in item.base if isinstance(part, Rewritten)]


def _answered(event: Event) -> set[str]:
    return {part.call_id for part in event.parts if isinstance(part, ToolResultPart) and part.call_id}


def _result_bytes(event: Event) -> int:
    """UTF-8 bytes of a message's tool results."""
    results = (part_text(part) for part in event.parts if isinstance(part, ToolResultPart))
    return sum(len(text.encode("utf-8", "surrogatepass")) for text in results)


def cached_above(story: Story, finding: Finding) -> None:
    """More cached tokens than prompt tokens, which no request can have."""
    calls = list(enumerate(story.session.calls))
    above = [step for step, call in calls if call.prompt_tokens and (call.cached_tokens or 0) > call.prompt_tokens]
    if not above or finding.step != above[0]:
        raise Wrong("it is not the first call with more cached tokens than prompt tokens")
    call = story.session.calls[above[0]]
    counted = sum(count is not None for count in story.counts)
    agree(finding, above=len(above), counted=counted, prompt=call.prompt_tokens, cached=call.cached_tokens)


def _since(story: Story, first: int, last: int) -> tuple[Event, ...]:
    """The messages that the log grew by between the calls of two steps."""
    return story.session.events[story.session.calls[first].at : story.session.calls[last].at]


def _sent_text(story: Story, step: int) -> int:
    view, place = story.view_on(story.places[step], story.session.calls[step].at)
    return _text_tokens(materialise(view, story.session, place))


def _text_tokens(events: Iterable[Event]) -> int:
    return sum(lexical_tokens(part_text(part)) for event in events for part in event.parts)


def no_usage(story: Story, finding: Finding) -> None:
    calls = story.session.calls
    missing = [step for step, call in enumerate(calls) if story.counts[step] is None and call.response is not None]
    answered = [call for step, call in enumerate(calls) if story.counts[step] or call.response is not None]
    agree(finding, missing=len(missing), calls=len(answered))
    if ("Every figure is an estimate" in finding.sentence) != (len(missing) == len(answered)):
        raise Wrong("only where no call is counted is every figure an estimate")
    if finding.step not in missing:
        raise Wrong(f"the call of step {finding.step} is counted")
    total, over = story.session.prompt_tokens_total, story.session.total_calls
    if story.average is not None:
        agree(finding, total=total, total_calls=over, average=story.average)
    elif total and not over and len(missing) == len(answered) and story.session.usage_ratio is None:
        agree(finding, total=total, each=int(total / len(answered) + 0.5))
    elif "total" in finding.numbers or "average" in finding.numbers:
        raise Wrong("the session has no total, or counts of single calls")


def left_branches(story: Story, finding: Finding) -> None:
    left, peak = story.session.left, max(story.sent)
    if left is None or not (left.compactions or left.refused or left.largest > peak):
        raise Wrong("no branch that was left has more than this one")
    agree(finding, messages=left.messages, compactions=left.compactions, refused=left.refused)
    if left.largest > peak:
        agree(finding, largest=left.largest, peak=peak)
    elif "largest" in finding.numbers:
        raise Wrong("no prompt on a branch that was left is larger")


RECORDED: dict[str, Callable[..., None]] = {
    check.__name__: check
    for check in (
        window_contradicted,
        window_doubted,
        overflow,
        near_miss,
        late,
        counted_over,
        refused,
        needless,
        needed,
        request_lost,
        part_lost,
        rule_lost,
        earlier_rule_lost,
        todo_lost,
        grown,
        summary_not_kept,
        loop,
        sliding_window,
        thrash,
        sealed_summary,
        fallback_summary,
        empty_summary,
        silent_truncation,
        usage_in_characters,
        usage_repeated,
        cached_above,
        results_cleared,
        asked_again,
        repeated_call,
        left_branches,
        no_usage,
        never_paid,
    )
}
