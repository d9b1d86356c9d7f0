"""Whether the user takes back a rule that was set before, in a later message or a later sentence of the same one."""

from __future__ import annotations

import re
from collections.abc import Iterable

from guard_core.events import Event
from guard_core.facts.instructions import LONGEST_RULE, sentences
from guard_core.facts.lifting import FORBIDDEN_PART, permits, revokes, same_verbs
from guard_core.facts.texts import FEWEST_WORDS, content_words, reverses

# What lifts a rule for the moment, on a condition or for the user's own hands leaves it in force; so does a question.
# Ours.
_FOR_ONCE = re.compile(
    r"\b(?:this (?:one )?time|(?:just |only )?(?:this )?once|for now|right now|today|whether|as soon as"
    r"|if(?! you (?:want|like|need))"
    r"|i(?: (?:can|may|must|should|will)|['’]ll)"
    r"|diesmal|dieses mal|ausnahmsweise|einmal|heute|falls|wenn|sobald|ob|cette fois|pour l['’]instant|aujourd['’]hui"
    r"|dès que|esta vez|por ahora|hoy|si|en cuanto)\b"
    "|这次|這次|如果|今回|もし|이번|만약",
    re.IGNORECASE,
)
# What parts a permission from what is to be done before or after it: "rebase onto main, then you may push". Ours.
_THEN = re.compile(
    r"(?:[,;]|\band) (?:then|after that|afterwards)\b|\bthen(?= you\b)|[,;] dann\b|[,;] puis\b|[,;] (?:y )?luego\b",
    re.IGNORECASE,
)
MOST_WORDS = 0.75  # ours: of the words of what a rule is about; of fewer than FEWEST_WORDS all
LEAST_ROOT = 3  # ours: letters by which forms of one word are known
_PREFIX = re.compile(r"^(?:ab|an|auf|aus|bei|ein|hinzu|los|mit|nach|um|vor|weg|zu|zurück)(?=\w{3})")  # "fass … an"


def withdraws(event: Event, rule: str) -> bool:
    """Does a sentence of a message take a rule back."""
    return any(takes_back(said, rule) for said in sentences(event.parts))


def takes_back(said: str, rule: str) -> bool:
    """Says a sentence of the user, in the words of a rule, that it no longer holds, or its opposite."""
    return bool(taken_back(said, (rule,)))


def taken_back(said: str, rules: Iterable[str]) -> list[str]:
    """The rules that a sentence of the user takes back."""
    if len(said) > LONGEST_RULE or said.rstrip().endswith(("?", "？")):
        return []
    opposed = [rule for rule in rules if reverses(said, rule)]  # by few sentences: on others no pattern is tried
    if not opposed or _FOR_ONCE.search(said):
        return []
    steps = _THEN.split(said)
    return [rule for rule in opposed if revokes(said) or any(_is_about(step, rule) for step in steps)]


def only_lifts(said: str, rules: Iterable[str]) -> bool:
    """Does a sentence take back one of these rules and ask for nothing: "you may touch the tests again"."""
    return permits(said) and bool(taken_back(said, rules))


def _is_about(said: str, rule: str) -> bool:
    """Does a sentence speak of what a rule forbids or demands, and not of something else to do with the same: "you may
    run the tests again" lifts no rule never to touch them."""
    forbidden = FORBIDDEN_PART.search(rule)
    wanted = (content_words(forbidden[1]) if forbidden else frozenset()) or content_words(rule)
    roots = [_root(word) for word in content_words(said)]
    in_both = {word for word in wanted if any(_are_alike(_root(word), root) for root in roots)}
    if forbidden and (verb := content_words(forbidden[1].split()[0])):
        alike = [_root(word) for word in content_words(" ".join(same_verbs(forbidden[1].split()[0])))]
        if not verb <= in_both and not any(_are_alike(one, root) for one in alike for root in roots):
            return False
        in_both |= verb
    least = MOST_WORDS if len(wanted) >= FEWEST_WORDS else 1
    return len(in_both) >= least * len(wanted)


def _root(word: str) -> str:
    """A word without a separable prefix of German, and as Spanish writes it before other vowels: toqu, toc."""
    return _PREFIX.sub("", word).replace("qu", "c")


def _are_alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= LEAST_ROOT and longer.startswith(shorter))
