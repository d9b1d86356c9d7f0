"""How claims about what a recording's compactions took away are recomputed: requests, rules, todos."""

from __future__ import annotations

import re
from collections.abc import Iterator

from guard_core.checker.plain_words import is_closed, is_long, own_words, plainly_lifts, typed
from guard_core.checker.restating import (
    MARKS,
    SHORTEST_QUOTE,
    TYPED,
    has_part,
    is_foreign,
    lifts_before,
    may_state,
    parted,
    repeats,
    restates,
    rule_in,
    states_rules_alone,
    weight,
)
from guard_core.checker.shared import (
    cannot_be_read,
)
from guard_core.checker.story import Story, Wrong, agree, holds, number, own_texts, same, spoken
from guard_core.events import Event, Role, part_text
from guard_core.facts.instructions import (
    REQUEST,
    is_universal,
    kind_of,
    outlasts_its_turn,
    says_something,
)
from guard_core.facts.lifting import permits
from guard_core.facts.texts import (
    instructions_in,
    split_sentences,
)
from guard_core.facts.todos import OpenTodo, Todos
from guard_core.facts.withdrawals import takes_back, withdraws
from guard_core.findings.claims import INFO, Finding
from guard_core.requests import materialise

_MOST_TODOS = 10  # of a list that are looked for
_MOST_MESSAGES = 20  # with rules that a later turn lost
_MOST_RULES = 5  # of one message that are looked for
END_MARKS = " \"'.,;:!?…。，；：！？、"
_COURTESY = re.compile(
    r"^(?:(?:please|pls|kindly|(can|could|would|will) you( please)?|bitte|s['’]il (te|vous) pla[îi]t|por favor"
    r"|per favore)[,:]?\s+|请|請)",
    re.IGNORECASE,
)


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
    _names_continued_request(story, finding, message)
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
    own = typed(story.session.events[message])
    texts = [" ".join(text.split()) for text in own]
    commands = [" ".join(TYPED.findall(text)) for text in texts]  # the name of a command and its arguments
    commands += [
        text.partition(">")[2] for text in texts if text.startswith(("<task>", "<user_message>", "<feedback>"))
    ]
    if not quote or not any(_begins(text, quote.lstrip(MARKS)) for text in (*own, *commands)):
        raise Wrong(f"message {message} does not begin with the quoted words, but for rules before them")
    if _asks_for_nothing(story, message):
        raise Wrong("the message only takes rules back, and asks for nothing")
    return _without_courtesy(quote)


def _names_continued_request(story: Story, finding: Finding, message: int) -> None:
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
        if is_known and index not in number(finding, "quoted_by") and restates(story, index, message):
            raise Wrong("the summary may say the request in other words, and the claim does not say so")
        return False
    if passage and passage not in " ".join(" ".join(typed(story.session.events[message])).split()):
        raise Wrong("the request has no such words")
    blamed, last = number(finding, "compaction"), number(finding, "last_absent")
    if passage and not repeats(story, blamed, passage):
        raise Wrong("the summary does not quote these words")
    if restated and not restates(story, blamed, message):
        raise Wrong("the summary does not say each sentence of the request, not even in other words")
    later = [
        index
        for index in removals
        if story.first_call_after(blamed) < story.first_call_after(index) <= last
        and story.compaction(index).place not in unread
    ]
    forgetful = [index for index in later if not has_part(story, index, message)]
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
    in_force: dict[int, int] = {}  # by call, the compaction that it is the first to be built on
    for index, item in enumerate(story.compactions):
        in_force.setdefault(item.step, index)
    return [
        index
        for index in range(len(story.compactions))
        if (call := story.first_call_after(index)) >= 0
        and story.task_of(call) == message
        and all(_takes_away(story, place, message) for place in (index, in_force.get(call, -1)))
        and not holds(story.views[call][0], message)
    ]


def part_lost(story: Story, finding: Finding) -> None:
    """The sentences of a message that ask for something are searched in every later request of its turn."""
    message = number(finding, "message")
    wishes = [
        one
        for one in dict.fromkeys(_sentences_of(story, message))
        if kind_of(one, of_user=True) == REQUEST and says_something(one) and weight(one) >= SHORTEST_QUOTE
    ]
    later = _rest_of_turn(story, message)
    lost = _lost_from(story, later, [(one, _without_courtesy(one)) for one in wishes])
    if not 0 < len(lost) < len(wishes):
        raise Wrong("a later request of the turn has each of its sentences, or may have it, or none has any")
    _names_the_first(story, finding, "quote", lost, later)


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
        while silent and not _may_have_rule(story, silent[-1], sentence, words):
            silent.pop()
        lost += [(later[len(silent)], sentence)] if len(silent) < len(later) else []
    return lost


def _names_the_first(story: Story, finding: Finding, name: str, lost: list[tuple[int, str]], later: list[int]) -> None:
    """Does a claim name, as the number `name`, what was lost first of some sentences, and its step."""
    step, words = min(lost, key=lambda item: item[0])
    named = str(number(finding, name))
    if not named or not words.startswith(named):
        raise Wrong("that is not the sentence that was lost first")
    agree(finding, is_whole=named == words, last=later[-1])
    _says_how_much(finding, words)
    same("count", finding.count, len(lost))
    removals = _removals(story, number(finding, "message"))
    same("compaction", number(finding, "compaction"), [i for i in removals if story.first_call_after(i) <= step][-1])
    same("step", finding.step, step)


def rule_lost(story: Story, finding: Finding) -> None:
    """The rules of a message are searched in every later request of its turn."""
    message = number(finding, "message")
    later = _rest_of_turn(story, message)
    said = _sentences_of(story, message)
    if not any(one and rule_in(one) != one and not lifts_before(said[:at], one) for at, one in enumerate(said)):
        raise Wrong("the message asks for nothing besides its rules")
    lost = _lost_from(story, later, [(rule, rule) for rule in rules_of(story, message)])
    lost = [(step, rule) for step, rule in lost if not is_withdrawn(story, message, rule, step)]
    if not lost:
        raise Wrong("a later request of the turn has each of its rules, or may have it")
    _names_the_first(story, finding, "rule", lost, later)


def todo_lost(story: Story, finding: Finding) -> None:
    """The todos that were open at a compaction and that it took away are searched in every request since."""
    message, index = number(finding, "message"), number(finding, "compaction")
    group = next((group for group in _todos_taken(story) if any(todo.message == message for todo in group)), [])
    lost: list[tuple[int, int, OpenTodo]] = []
    for todo in group:
        silent = [step for step in range(len(story.sent)) if story.session.calls[step].at > todo.message]
        while silent and not _may_have_rule(story, silent[-1], todo.text):
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
            is_known = weight(todo.text) >= SHORTEST_QUOTE and says_something(todo.text)
            if is_known and _takes_away(story, place, todo.message) and (todo.message, todo.text) not in taken:
                taken.add((todo.message, todo.text))
                group.setdefault(todo.text, todo)
        yield [todo._replace(later=_updated_at(story, todo, at)) for todo in list(group.values())[:_MOST_TODOS]]


def _open_before(story: Story, at: int) -> list[OpenTodo]:
    """The todos that were open before event `at`, read anew from the log."""
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
            while silent and not _may_have_rule(story, silent[-1], rule):
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
    written = [text for one in typed(story.session.events[message]) if (text := one.strip())]
    asked = written[0] if written else ""
    return [" ".join(one.split()) for one in split_sentences(" ".join(TYPED.findall(asked)) or own_words(asked))]


def rules_of(story: Story, message: int) -> list[str]:
    """The first rules of a message that the system prompt has not."""
    fixed = Event(Role.SYSTEM, story.session.system or ())
    said = _sentences_of(story, message)
    stated = [(at, rule) for at, one in enumerate(said) if (rule := rule_in(one))]
    rules = dict.fromkeys(rule for at, rule in stated if not any(takes_back(one, rule) for one in said[at + 1 :]))
    known = [rule for rule in rules if weight(rule) >= SHORTEST_QUOTE and says_something(rule)][:_MOST_RULES]
    return [rule for rule in known if not story.quotes(fixed, rule.strip(END_MARKS))]


def is_withdrawn(story: Story, message: int, rule: str, step: int) -> bool:
    """Did the user take a rule back between its message and the call of a step."""
    since = [event for event in story.session.events[message + 1 : story.session.calls[step].at] if event.starts_turn()]
    said = [one for event in since for part in event.parts for one in split_sentences(part_text(part))]
    return any(withdraws(event, rule) for event in since) or any(plainly_lifts(one, rule) for one in said)


def _may_have_rule(story: Story, step: int, rule: str, words: str = "") -> bool:
    """May a request have a rule: a message quotes it, or what the compaction before it put in says it in other words,
    in another script, or cannot be read."""
    plain = (words or rule).strip(END_MARKS)
    place = story.places[step]
    if story.says(step, plain) or place in _unread(story, plain):
        return True
    if place < 0:
        return False
    said = ["\n".join(map(part_text, event.parts)) for event in own_texts(story.session.compactions[place])]
    return is_foreign("\n".join(said), rule) or any(may_state(text, rule) for text in said)


def _begins(text: str, quote: str) -> bool:
    """Does a text begin with some words, or have them behind sentences and lines that state rules alone."""
    if " ".join(text.split()).lstrip(MARKS).startswith(quote):
        return True
    sentences = [folded for one in split_sentences(text) if (folded := " ".join(one.split()))]
    place = next((at for at in range(1, len(sentences)) if " ".join(sentences[at:]).startswith(quote)), 0)
    before = sentences[:place]
    return place > 0 and all(states_rules_alone(one) or lifts_before(before[:at], one) for at, one in enumerate(before))


def _without_courtesy(quote: str) -> str:
    """A quotation as it is looked for: without the "please" at its beginning, where enough is left."""
    plain = _COURTESY.sub("", quote)
    return plain if weight(plain) >= SHORTEST_QUOTE else quote


def _keeps_a_rule(story: Story, finding: Finding, message: int) -> None:
    """Is what the summary is said to keep of a request a rule that it states, or part of what it asks for."""
    rule, passage = str(finding.numbers["kept_rule"]), str(finding.numbers["passage"])
    if bool(rule) != ("keeps the rule" in finding.sentence):
        raise Wrong("the sentence says otherwise whether the summary keeps a rule")
    rules, tasks = parted(story, message)
    is_of_rule, is_asked = (any(clause.startswith(rule) for clause in part) for part in (rules, tasks))
    if rule and (not is_of_rule or is_asked or not repeats(story, number(finding, "compaction"), rule)):
        raise Wrong("the request states no such rule, or the summary does not quote it")
    if passage and tasks and not any(clause.startswith(passage) for clause in tasks):
        raise Wrong("what the summary quotes is a rule, and nothing of what was asked for")


def _unread(story: Story, quote: str) -> set[int]:
    """The places of compactions whose summary cannot be read, though what was there to be summarised had the words."""
    unread: set[int] = set()
    for place, item in enumerate(story.session.compactions):
        before, whose = story.view_on(place - 1, item.at)
        was_quoted = any(story.quotes(event, quote) for event in materialise(before, story.session, whose))
        if cannot_be_read(item) and (was_quoted or place - 1 in unread):
            unread.add(place)
        after = materialise(item.base, story.session, place)
        if any(story.quotes(event, quote) for event in after):
            unread.discard(place)
    return unread


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
