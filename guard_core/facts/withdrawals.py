"""Whether a message of the user takes a rule back that was set before."""

from __future__ import annotations

import re

from guard_core.events import Event
from guard_core.facts.instructions import LONGEST_RULE, sentences
from guard_core.facts.lifting import FORBIDDEN_PART, revokes
from guard_core.facts.texts import FEWEST_WORDS, content_words, reverses

# What lifts a rule for the moment, on a condition or for the user's own hands leaves it in force; so does a question.
# Ours.
_FOR_ONCE = re.compile(
    r"\b(?:this (?:one )?time|(?:just |only )?(?:this )?once|for now|right now|today|whether"
    r"|if(?! you (?:want|like|need))"
    r"|i(?: (?:can|may|must|should|will)|['’]ll)"
    r"|diesmal|dieses mal|ausnahmsweise|einmal|heute|falls|wenn|ob|cette fois|pour l['’]instant|aujourd['’]hui"
    r"|esta vez|por ahora|hoy|si)\b"
    "|这次|這次|如果|今回|이번",
    re.IGNORECASE,
)
MOST_WORDS = (
    0.75  # ours: of the words of what a rule is about, in a sentence about the same; of fewer than FEWEST_WORDS all
)
LEAST_ROOT = 3  # ours: letters by which forms of one word are known
_PREFIX = re.compile(r"^(?:ab|an|auf|aus|bei|ein|hinzu|los|mit|nach|um|vor|weg|zu|zurück)(?=\w{3})")  # "fass … an"


def withdraws(event: Event, rule: str) -> bool:
    """Says a sentence of a message, in the words of a rule, that it no longer holds, or its opposite."""
    return any(
        reverses(said, rule) and (revokes(said) or _is_about(said, rule))
        for said in sentences(event.parts)
        if len(said) <= LONGEST_RULE and not said.rstrip().endswith(("?", "？")) and not _FOR_ONCE.search(said)
    )


def _is_about(said: str, rule: str) -> bool:
    """Does a sentence speak of what a rule forbids or demands, and not of something else to do with the same: "you may
    run the tests again" lifts no rule never to touch them."""
    forbidden = FORBIDDEN_PART.search(rule)
    wanted = (content_words(forbidden[1]) if forbidden else frozenset()) or content_words(rule)
    roots = [_root(word) for word in content_words(said)]
    found = {word for word in wanted if any(_are_alike(_root(word), root) for root in roots)}
    verb = content_words(forbidden[1].split()[0]) if forbidden else frozenset()
    least = MOST_WORDS if len(wanted) >= FEWEST_WORDS else 1
    return verb <= found and len(found) >= least * len(wanted)


def _root(word: str) -> str:
    """A word without a separable prefix of German, and as Spanish writes it before other vowels: toqu, toc."""
    return _PREFIX.sub("", word).replace("qu", "c")


def _are_alike(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    return one == other or (len(shorter) >= LEAST_ROOT and longer.startswith(shorter))
