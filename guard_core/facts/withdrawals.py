"""Whether a message of the user takes a rule back that was set before."""

from __future__ import annotations

import re

from guard_core.events import Event
from guard_core.facts.instructions import LONGEST_RULE, sentences
from guard_core.facts.texts import reverses

# What lifts a rule for the moment leaves it in force; so does a question. Ours.
_FOR_ONCE = re.compile(
    r"\b(?:this (?:one )?time|(?:just |only )?(?:this )?once|for now|right now|today"
    r"|diesmal|dieses mal|ausnahmsweise|einmal|heute|cette fois|pour l['’]instant|aujourd['’]hui|esta vez|por ahora"
    r"|hoy)\b"
    "|这次|這次|今回|이번",
    re.IGNORECASE,
)


def withdraws(event: Event, rule: str) -> bool:
    """Says a sentence of a message, in the words of a rule, that it no longer holds, or its opposite."""
    return any(
        reverses(said, rule)
        for said in sentences(event.parts)
        if len(said) <= LONGEST_RULE and not said.rstrip().endswith(("?", "？")) and not _FOR_ONCE.search(said)
    )
