"""Messages of users that ask for nothing of their own: they only ask to continue with what was asked for before."""

from __future__ import annotations

import re

from guard_core.facts.lifting import permits
from guard_core.facts.texts import split_sentences
from guard_core.quoting import normalised

LONGEST = 200  # characters of such a message, ours: of what was typed, without what an agent or editor put around it
# Not "yes", which answers a question of the agent: what is then continued is in that question.
_BEFORE = (
    r"(?:(?:ok(?:ay)?|good|great|thanks|thank you|please|pls|and|now|then|just|so|bitte|gut|danke|d['’]accord"
    r"|s['’]il te pla[îi]t|vale|por favor|per favore|давай|пожалуйста)\b[\s,.!:;-]*)*"
)
_BEHIND = (
    r"(?:[\s,.!:;-]+(?:please|pls|then|now|on|working|with (?:it|that|this|the (?:task|work))"
    r"|(?:from )?where (?:you|we) left off|bitte|damit|jetzt|s['’]il te pla[îi]t|por favor|per favore|пожалуйста))*"
)
_CONTINUE = (
    r"continue|go on|go ahead|keep (?:going|on|working)|carry on|proceed|resume"
    r"|(?:mach(?:e|t)? )?(?:bitte )?weiter(?:machen)?|fahre? fort|fortfahren|nur zu"
    r"|continue[rz]?|vas[- ]y|poursui(?:s|vez|vre)|contin[uú][ae]|sigue(?: adelante)?|adelante|prosiga|prossiga"
    r"|prosegui|(?:vai )?avanti|ga (?:door|verder)|kontynuuj|продолжай(?:те)?|дальше|продолжить"
)
_EASTERN = (
    "(?:请|請|好的?[,，]?)*(?:继续|繼續|接着)(?:做|吧|工作|进行|進行|执行|執行)?|続け(?:て)?(?:ください|下さい)?|続行"
    "|계속(?: ?(?:진행)?(?:해|하세요|해줘|해주세요))?"
)
_ONLY = re.compile(rf"[\s.…]*{_BEFORE}(?:(?:{_CONTINUE}){_BEHIND}|{_EASTERN})[\s.,!…。！]*", re.IGNORECASE)


def asks_only_to_continue(words: str) -> bool:
    """Is "continue", "go on", "weiter" or the like all that a message asks for, whatever it permits beside."""
    if len(words) > LONGEST:
        return False
    if _ONLY.fullmatch(normalised(words)):
        return True
    asking = " ".join(one for one in split_sentences(words) if not permits(one))
    return asking != "" and _ONLY.fullmatch(normalised(asking)) is not None
