"""Sentences that have the words of a rule, "must", "only", "never", and say how things are, what somebody guesses or
what a program printed: ours, found by reading what users of agents write.

Nobody misses a statement that a summary leaves out as they miss a rule: where the wording leaves it open, a sentence
is taken for a statement.
"""

from __future__ import annotations

import re

# Lines of programs: times, errors and warnings with a colon, places in files, tracebacks, assertions and their
# messages, comments of code with or without the number or the mark of a changed line before them.
_OUTPUT = re.compile(
    r"[^\w\s]*(?:\d{4}-\d\d-\d\d|\d\d:\d\d:\d\d|[\w.]+(?:Error|Exception|Warning):|Error:|(?:error|warning|fatal)(?:\[\w+\])?:"
    r"|npm (?:ERR!|WARN)|Traceback |E {2,}|assert |[\w./-]+\.\w{1,5}:\d+(?::\d+)?:\s|Messages?:\s{2}"
    r"|\d*\s*[+-]?\s*(?://|/\*))"
)
# What begins as a rule and continues as a statement: with a subject and a verb that no rule has, "only three of
# them were left", or with a circumstance and a verb before its subject, "never before has it rained so much"; behind
# "without" and the like in its main clause.
_BEGINS_AS_RULE = re.compile(
    r"\W*(?:(?:(?:and|but|or|so|also|then)\b\W*)*(?:only|never|always|at least|at most)\s+(?:(?:in|on|at|after|before"
    r"|once|since|when|during)\b(?P<circumstance>[^,;:]*)|(?:a|an|the|this|these|those|some|few|half|most|one|two|three"
    r"|four|five|six|seven|eight|nine|ten|eleven|twelve|he|she|it|they|\d[\d.,]*)\b(?P<about>[^,;:]*)"
    r"|(?P<verb>has|had|is|are|was|were|did)\b)"
    r"|(?:without|instead of|unless)\b(?P<main>.*)"
    r"|(?:and|but|so|also|then)?\W*only\s+(?P<subject>[^,;:—–]*))",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|does|did|will|would|they|he|she|(?!embed)[a-z]{2,}(?<!e)ed)\b", re.IGNORECASE
)
_IS = re.compile(r"\b(?:is|are|was|were|has|had|gets)\b", re.IGNORECASE)
# A participle before its noun, "the generated files", is no verb of a statement.
_ATTRIBUTE = re.compile(
    r"(?:^|\b(?:an?|the|of|in|on|at|for|with))\s+[a-z]+ed\s+"
    r"(?=[a-z])(?!(?:an?|the|this|that|his|her|its|their|it|in|on|at|by|for|from|to|with|of|and|or)\b)",
    re.IGNORECASE,
)
_INVERTED = re.compile(
    r"^\s*(?:has|have|had|is|are|was|were|did|does)\b"
    r"|\b(?:had|was|were|did)\s+(?:an?|the|this|that|these|those|so|any|some|many|most|he|she|it|they|his|her|its|their)\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(
    r"\b(?:that|which|who|whose|where|when|if|while|until|because|as|what|how|than|you|we|i)\b.*", re.IGNORECASE
)
_DEMANDS = re.compile(
    r"\b(?:must|should|shall|please|required|forbidden|prohibited|allowed|permitted|accepted|(?:is|are) (?:to|needed)"
    r"|ha(?:s|ve) to|needs? to|(?:may|can)(?: ?not)? be|never|always|avoid|do not|don['’]?t)\b",
    re.IGNORECASE,
)
# Verbs of what does something; not "tests" and "files", which a rule may name: "never files". Ours.
_HAPPENS = (
    "affects|answers|appears|applies|contains|covers|crashes|creates|does|ends|exists|finds|gets|gives|goes|handles"
    "|happens|keeps|knows|loses|makes|matters|means|needs|reaches|reads|receives|resolves|responds|returns|runs|sees|sets"
    "|shows|starts|stops|supports|takes|terminates|throws|touches|uses|waits|works|writes"
)
# What these words say of how things are, not of what to do. "We only commit to main when it is green" may be either.
_STATED = re.compile(
    r"\bi (?:can(?:no|['’]?)t|always|never|only)\b"
    r"|\bi (?:don['’]?t|do not) (?!(?:(?:really|ever|even) )?"
    r"(?:accept|allow|expect|like|need|permit|tolerate|want|wish)\b)"
    r"|\bthey (?:don['’]?t|do not|can(?:not|['’]?t))\b"
    r"|\bwe (?:never|always) (?:had|have|saw|see|got|get)\b|\bwe(?: (?:really|just|simply|still|currently))? "
    r"(?:only|can(?:not|['’]?t)|should (?!(?:\w+ )?(?:never|always|not|only)\b))"
    r"|\bthere(?:['’]s| is| are| was| were) (?:at least|at most|only|always)\b"
    r"|\b(?:it|that|this) should (?:now )?(?:be (?:fine|ok(?:ay)?|good)|work)\b"
    r"|\byou should (?:now )?(?:get|see)\b"
    r"|\bonly (?=(?:(?:the|one|an?|some|\d+)(?: \w+){1,3} )?"
    r"(?:appear(?:s|ed)|fail(?:s|ed)|happen(?:s|ed)|takes?|took)\b)"
    r"|\bwithout (?:an? )?(?:error|problem|warning)s?\b"
    # what is expected to happen, or was
    r"|\bshould(?:n['’]?t| not)?(?: (?:now|still|all|just|also|already))*"
    r" (?:pass\b(?! (?:an?|it|on|the)\b)|succeed\b"
    r"|have (?:been|had|done|gone|got(?:ten)?|seen|made|found|taken|\w+ed)\b)"
    r"|\bshould(?:n['’]?t| not) happen\b"
    r"|\bshould already\b|\bshould (?:\w+ ){1,5}already\b"
    r"|\b(?:it|that|this)(?: really)? should(?:n['’]?t| not) be (?:an? )?(?:thing|issue|problem|concern)\b"
    # what is only possible; what has a name, "all required fields", and what nothing needs
    r"|\bmay not (?!be (?:changed|touched|edited|modified|deleted|removed|renamed|committed|pushed|merged|moved"
    r"|used)\b)(?<!you may not )(?<!agents may not )(?<!agent may not )(?<!anyone may not )"
    r"|\b(?:all|any|each|every|the|these|those|its|their|other|following|missing|\d+) required\b"
    r"(?=\s+[`\"'“]?\w)(?!\s+(?:and|at|because|before|by|for|from|if|in|is|on|that|to|when|where)\b)"
    r"|\b(?:as|if|when(?:ever)?|where(?:ver)?) required\b"
    r"|\bno\b[^,.;:]*\b(?:is|are) required\b|\b(?:is|are)(?:n['’]?t| not) required\b"
    # purposes, unless somebody wants or needs them, and indirect questions
    r"|(?<!want )(?<!need )(?<!try )(?<!have )\bto (?:ensure|make sure|avoid)\b"
    r"|\b(?:whether|(?:ask|check|consider|debate|decide|know|see|sure|unclear|unsure|wonder)\w* if)\b"
    r"(?:(?! (?:and|but) (?:always|avoid|do not|don['’]?t|make sure|never|only)\b)[^,.;:])*"
    r"|\bso (?:that )?(?:you|we|it|they) don['’]?t\b"
    # what happens, and names: "never resolves", "only touches the disk", "an always-on service"
    rf"|(?<!that )(?<!which )\b(?:never|only|always) (?:{_HAPPENS})\b|\b(?:always|must|never|only|required)-\w+",
    re.IGNORECASE,
)
_UNSURE = r"(?:idk|(?:i )?dunno|i (?:don['’]?t|do not) know)"
# Guesses, turns of speech, what holds only at present, and what others do: none is a rule for whoever works.
_GUESS = re.compile(
    r"\b(?:must have|(?:it|this|that|there|i) must be|never mind|don['’]?t (?:worry|you|forget)"
    r"|should be (?:enough|able)|i (?:think|guess|believe|feel|suppose|wonder)|seems?|looks? like"
    rf"|{_UNSURE}\b[\s,.…]*(?:maybe|perhaps)"
    r"|(?:should|must) (?:probably|perhaps|maybe|currently)|(?:may|might|could) be wrong|wondering)\b"
    rf"|[,.…]\s*{_UNSURE}[\s,.…]*$"  # behind a comma, unlike in "never answer I don't know"
    r"|^\W*(?:(?:and|but|or|so|also|then)\b\W*)*"
    r"(?:maybe|perhaps|possibly|probably|currently|consider (?:if|whether))\b",
    re.IGNORECASE,
)
# "- Sets the limit (which must be positive)" describes; so do "- Bad: you must run it" and a line in quotation marks.
_DESCRIBES = re.compile(
    r"\W*(?:adds|checks|contains|defines|describes|explains|fires|handles|holds|lists|means|provides|reads|returns|runs"
    r"|sets|shows|specifies|stores|uses|writes)\b|[-*•\s]*(?:bad|wrong|before|old|actual|e\.g\.|example)\W*:"
    r"|\W*[\"“][^\"“”]*[\"”]\W*$",
    re.IGNORECASE,
)
_ASKED_BACK = re.compile(
    r"\W*(?:(?:and|but|or|so|then|also)\b\W*)*(?:should|shall|must)(?:n['’]?t)? (?:we|i|it|this|that|they|there|the)\b",
    re.IGNORECASE,
)


def is_printed(words: str) -> bool:
    """Is a line what a program prints, or a comment of code."""
    return _OUTPUT.match(words) is not None


def without_statements(words: str) -> str:
    """A sentence without the words in it that only say how things are."""
    return _STATED.sub("", words)


def is_guess(words: str) -> bool:
    """Does a sentence guess or propose, or say what holds only at present."""
    return _GUESS.search(words) is not None


def is_question(words: str) -> bool:
    """Does a sentence end as a question, marks of emphasis and brackets aside, or begin as one that asks what to do."""
    return words.rstrip("*_`\"'”’)]» ").endswith(("?", "？", "؟")) or _ASKED_BACK.match(words) is not None


def describes(words: str) -> bool:
    """Does a sentence say how things are or were: it describes, or begins as a rule does and ends as a statement."""
    if _DESCRIBES.match(words):
        return True
    stated = _BEGINS_AS_RULE.match(words.replace("**", ""))
    if stated is None or stated["verb"]:
        return stated is not None
    if (circumstance := stated["circumstance"]) is not None:
        return _INVERTED.search(circumstance) is not None and _DEMANDS.search(circumstance) is None
    if (subject := stated["subject"]) is not None:
        return _IS.search(_RELATIVE.sub("", subject)) is not None and _DEMANDS.search(subject) is None
    clause = stated["about"] or (stated["main"] or "").partition(",")[2]
    main = _RELATIVE.sub("", _ATTRIBUTE.sub(" ", clause))
    return _FINITE.search(main) is not None and _DEMANDS.search(clause) is None
