"""Rules of the user that a replay takes out of the context: no request has them verbatim any more, up to the end of
their turn or, of those that hold for later turns, up to the end of the recording. What a summary would say of them is
not known."""

from __future__ import annotations

import numpy as np

from guard_core.facts.askers import is_of_agent
from guard_core.facts.instructions import outlasts_its_turn
from guard_core.findings.claims import INFO, Finding
from guard_core.findings.facts import Case, Facts
from guard_core.findings.presence import rules_of, shortened
from guard_core.findings.requests import RULE_CHARS
from guard_core.findings.words import at_step
from guard_core.ledger import Ints
from guard_core.outcomes.losses import Verbatim, reach
from guard_core.outcomes.sent import SentRequests
from guard_core.trace import Trace


def lost_rules(facts: Facts, trace: Trace) -> tuple[Finding, ...]:
    """A note on each lost rule of a session whose texts are in memory."""
    case, users = facts.replay(trace), facts.ledger.steps["user_event"]
    if not case.fired:
        return ()
    messages = np.unique(users[users >= 0])
    sent = _Sent(case, messages)
    dropped = [message for message in messages.tolist() if sent.ends_without(message)]
    findings = []
    for words in rules_of(facts.session, dropped) if dropped else ():
        sent = _Sent(case, np.unique([event for rule in words.rules for event in rule.events]))
        turn, later = sent.turn(words.message), sent.later(words.message)
        for rule in words.rules:
            events = np.array(rule.events, dtype=np.int64)
            is_earlier = not sent.lack(turn[-1], words.message, events)
            if is_earlier and not (outlasts_its_turn(rule.text) and sent.lack(later[-1], words.message, events)):
                continue
            step = sent.since(later if is_earlier else turn, words.message, events)
            if not rule.holds_at(int(facts.ledger.steps["at"][step])):
                continue
            findings.append(_finding(case, words.message, rule.text, step, is_earlier))
    return tuple(findings)


class _Sent:
    """The requests of a replay, in which some events are looked for."""

    def __init__(self, case: Case, events: Ints) -> None:
        self.steps, self.requests = case.facts.ledger.steps, SentRequests(case)
        self.texts = Verbatim(case.facts.ledger, events)

    def turn(self, message: int) -> Ints:
        """The steps of a message's turn."""
        return np.flatnonzero(self.steps["user_event"] == message)

    def later(self, message: int) -> Ints:
        """All steps behind a message."""
        return np.flatnonzero(self.steps["at"] > message)

    def ends_without(self, message: int) -> bool:
        """Is a message missing at the end of its turn or of the recording."""
        own = np.array([message], dtype=np.int64)
        ends = int(self.turn(message)[-1]), int(self.later(message)[-1])
        return any(self.lack(step, message, own) for step in ends)

    def lack(self, step: int, message: int, events: Ints) -> bool:
        """Has a request none of the events, and does the policy repeat neither the message nor one of them in it."""
        is_repeated = self.requests.repeated[step] in (message, *events.tolist())
        return not is_repeated and not reach(self.texts.ranges(self.requests.view(step)[0]), events)

    def since(self, steps: Ints, message: int, events: Ints) -> int:
        """The first of the last ones of some steps whose requests have none of the events: until the head of a request
        changes, it only grows."""
        first = stop = int(steps[-1]) + 1
        for start in reversed([int(steps[0]), *self.requests.changed[self.requests.changed > steps[0]].tolist()]):
            if start < stop:
                if not self.lack(stop - 1, message, events):
                    break
                first = stop = start
        return first


def _finding(case: Case, message: int, rule: str, step: int, is_earlier: bool) -> Finding:
    quote = shortened(rule, RULE_CHARS)
    until = "the end of the recording" if is_earlier else "the end of its turn"
    rest = "only a summary can hold it" if case.may_summarise else "the policy makes no summary that could hold it"
    of_agent = is_of_agent(case.facts.session, case.facts.session.events[message])
    whose, cut = "The task's rule" if of_agent else "Your rule", "" if quote == rule else " …"
    sentence = (
        f'{whose} "{quote}{cut}" (message {message + 1:,}) is in no request from '
        f"{at_step(step)} up to {until}, word for word; {rest}."
    )
    kind = "earlier_rule_lost" if is_earlier else "rule_lost"
    numbers = {"message": message, "of_agent": of_agent, "rule": quote, "is_whole": quote == rule}
    return Finding(kind, INFO, step, sentence, numbers)
