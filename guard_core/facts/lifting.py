"""Whether a sentence lifts a rule, or says its opposite, though it has the words of the rule.

Only what says so by its wording is known: "pushing to main is allowed" of "Never push to main". That a rule is lifted
is known in English, German, French, Spanish, Chinese, Japanese and Korean; an opposite in English alone. All words are
ours.
"""

from __future__ import annotations

import re

from guard_core.remembering import remembered

_NOT = (
    r"(?:never|do not|don['’]?t|does not|doesn['’]?t|must not|mustn['’]?t|should not|shouldn['’]?t|cannot|can['’]?t"
    r"|not to)"
)
_FORBIDS = re.compile(rf"\b(?:{_NOT}|avoid|no|forbidden|prohibited|not allowed)\b", re.IGNORECASE)
FORBIDDEN_PART = re.compile(rf"\b{_NOT} (?:ever )?(\w[^,;]*)", re.IGNORECASE)  # from the verb on
_FORBIDDEN_VERB = re.compile(rf"\b{_NOT} (?:ever )?(\w+)", re.IGNORECASE)
_DEMANDED_VERB = re.compile(r"\b(?:always|must|should|please|make sure to) (?!not\b|never\b|be\b)(\w+)", re.IGNORECASE)
_ALLOWS = re.compile(
    r"\b(?:is|are|was|were|be|been|now|explicitly) (?:(?:now|explicitly|again) )?(?:allowed|permitted)\b"
    r"|\b(?:user|they|he|she|you|i) (?:(?:has|have|had|later|then|now|since|explicitly) )*"
    r"(?:allow(?:s|ed)?|permit(?:s|ted)?)\b"
    r"|\b(?:allow|permit)(?:s|ed|ted) (?:\w+ing\b|(?:me|us|you|it|the (?:agent|assistant|model)) to\b)"
    r"|\b(?:gave|given|got|has|have) permission to\b|\b(?:free|okay|ok|fine) to\b"
    r"|\b(?:may|can) (?:(?:now |again )be \w+\b|(?:\w+ ){1,8}?again\b)",
    re.IGNORECASE,
)
_MAY = re.compile(r"^\W*(?:\w+\W+){0,3}?(?:you|we) (?:may|can)\b|\bmay (?:now )?be\b", re.IGNORECASE)
MOST_REMEMBERED = 1_000_000  # characters of sentences that were compared: a summary is, with many rules
_RULE = r"(?:ban|rule|prohibition|restriction|requirement|instruction|constraint)"
_ENDED = r"(?:lifted|withdrawn|withdrew|revoked|cancell?ed|waived|rescinded|dropped|retracted)"
_NO_LONGER = r"\b(?:no longer|not|isn['’]t|aren['’]t|doesn['’]t|don['’]t|needn['’]t) (?:be |have been )?"
# That a rule no longer holds, whatever it says.
_REVOKES = re.compile(
    rf"{_NO_LONGER}(?:appl(?:y|ies)|in force)\b"
    rf"|\b{_RULE}\b[^.;]{{0,80}}? (?:was|is|were|are|has been|have been) {_ENDED}\b"
    rf"|\b{_ENDED} (?:the|his|her|their|that|this|my|your) (?:\w+ )?{_RULE}\b"
    r"|(?<!not )(?<!n['’]t )(?<!never )\b(?:forget|ignore|disregard|lift) (?:about )?"
    rf"(?:what I said\b|(?:the|that|this|my|our) (?:(?:earlier|previous|first|last|old|above) )?{_RULE}\b)"
    # German, French, Spanish, Chinese
    r"|\b(?:gilt|gelten) (?:\w+ ){0,6}?nicht (?:mehr|länger)\b|\bnicht (?:mehr|länger) (?:gelten|zu beachten)\b"
    r"|\bs['’]appliqu\w+ plus\b|\bya no (?:\w+ ){0,2}?(?:aplican?|vale)\b|不再(?:适用|適用)",
    re.IGNORECASE,
)
# That something is not forbidden, which lifts what forbids it; in these languages, and in Japanese.
_NOT_FORBIDDEN = re.compile(
    rf"{_NO_LONGER}(?:forbidden|prohibited|banned)\b|\bnicht (?:mehr|länger) verboten\b"
    r"|\b(?:n['’]est|ne sont) plus interdit\w*|\bya no (?:\w+ ){0,2}?prohibid\w+|不再禁止|もう禁止ではな",
    re.IGNORECASE,
)
# That something need not be done, which lifts what demands it; in Korean, too.
_NOT_NEEDED = re.compile(
    rf"{_NO_LONGER}(?:required|needed|necessary|mandatory|have to|has to|need to|needs to)\b"
    r"|\bno need to\b|\bneed not\b"
    r"|\b(?:brauch\w*|muss(?:t)?|müssen|müsst) (?:\w+ ){0,6}?nicht (?:mehr|länger)\b"
    r"|\bnicht (?:mehr|länger) (?:nötig|erforderlich)\b"
    r"|\b(?:n['’]est|ne sont) plus (?:nécessaire|obligatoire|requis)\w*|\bplus besoin de\b"
    r"|\bya no (?:\w+ ){0,2}?(?:necesari\w+|obligatori\w+|hace falta)\b"
    "|不再(?:需要|必须|必須)|もう必要は?な|더 이상 .{0,30}(?:않아도|필요)",
    re.IGNORECASE,
)
# What makes a demand of a rule that forbids: "do not commit without running the tests".
_DEPENDS = re.compile(r"\b(?:without|unless|until|before|ohne|bevor|sans|avant|sin|antes)\b", re.IGNORECASE)
# What leaves a rule in force, in whole or in part, or says it in another way.
_HOLDS = re.compile(
    r"\b(?:not|no|never|nothing|none|neither|nor|cannot|\w+n['’]t|without|only|unless|except|until|before|avoid\w*|refrain\w*"
    r"|forb[ia]d\w*|prohibit\w*|bann?\w*|instead|rather|untouched|unchanged|intact|alone|off[- ]limits|protected)\b",
    re.IGNORECASE,
)
# That something is permitted again, or from now on, in these other languages, and what leaves it forbidden.
_ALLOWS_ELSEWHERE = re.compile(
    r"\b(?:darf(?:st)?|dürf(?:t|en)) (?:\w+ ){0,6}?(?:jetzt|nun|wieder|doch)\b"
    r"|\b(?:tu peux|vous pouvez|on peut) (?:désormais|de nouveau|à nouveau)\b"
    r"|\bya (?:puedes|podéis|puede|pueden|se puede)\b"
    "|(?:现在|現在|已经|已經)(?:又)?(?:可以|允许|允許)|ても(?:いい|よい|良い|構わない|かまわない)"
    "|(?:이제|다시) .{0,30}도 (?:돼|되|됩|괜찮|좋)",
    re.IGNORECASE,
)
_HOLDS_ELSEWHERE = re.compile(
    r"\b(?:nicht|nie|niemals|kein\w*|nur|außer|ohne|ne|pas|jamais|sauf|seulement|sans|nunca|no|solo|sólo|salvo|sin)\b"
    "|不要|不得|不能|不可|不许|禁止|只|しない|のみ|だけ|않|금지|말|만 ",
    re.IGNORECASE,
)
_AFFIRMED = re.compile(
    r"\b(?:always|must|should|can|may|will|(?:wants?|wanted|asked|told|decided)(?: \w+){0,2}? to) (?:now |also )?(\w+)",
    re.IGNORECASE,
)
_MARK = re.compile(r"^\W*\[[^\]]{0,200}\]\s+")  # what a client writes in brackets before a summary: no part of it
# What a request, or an item of a list of what is to do, begins with, and its verb. Ours.
_IMPERATIVE = re.compile(
    r"(?:\W|\d+[.)]|\b(?:next(?: steps?)?|to-?do|task|goal|pending|request):|\b(?:ok(?:ay)?|please|pls|then|also"
    r"|and|now|next|so|first|finally|let['’]?s|(?:can|could|would|will) you|(?:i|we) (?:need|want|have)(?: you)? to)\b"
    r")*(\w+)",
    re.IGNORECASE,
)
# Verbs of rules that mean the same, as far as a rule can be lifted with another one of them. Ours.
_ALIKE = [
    frozenset(verbs.split())
    for verbs in (
        "alter change edit modify rewrite touch update",
        "delete drop erase remove",
        "execute launch run start",
        "add create introduce",
        "call invoke use",
        "deploy publish release ship",
    )
]
# What a verb is said of: the words behind it, up to where another clause or purpose begins. Ours.
_OBJECT = (
    r"((?:[^\w,;:]+(?!(?:so|because|since|when|while|where|that|which|who|to|for|and|but|or|until|after|before|if|in"
    r" order)\b)\w+){1,8})"
)
_LITTLE = frozenset("the this that these those any all our your its their more again now anything file files".split())  # noqa: SIM905
_AFFIRMED_OF = re.compile(f"(?:{_AFFIRMED.pattern}){_OBJECT}", re.IGNORECASE)
_OBJECT_FIRST = re.compile(_OBJECT, re.IGNORECASE)


def opposes(said: str, rule: str) -> bool:
    """Does a sentence, which has the words of a rule or a request, lift it, permit what it forbids, demand its
    opposite, or forbid what it asks for."""
    said = _MARK.sub("", said)
    if revokes(said) and not revokes(rule):
        return True
    if any(pattern.search(said) and not pattern.search(rule) for pattern in _lifting(rule)):
        return True
    if _allows_elsewhere(said) and not _allows_elsewhere(rule):
        return True
    if verb := _FORBIDDEN_VERB.search(rule):
        demanded = {*_affirmed(said), _imperative(said)}
        is_affirmed = verb[1].casefold() in demanded or _affirms_alike(said, rule, verb)
        return (is_affirmed or (_allows(said) and not _allows(rule))) and not _HOLDS.search(said)
    if _FORBIDS.search(rule):
        return _allows(said) and not _allows(rule) and not _HOLDS.search(said)
    verb = _DEMANDED_VERB.search(rule)
    if re.search(r"\b(?:without|only|unless|except|until|before|but)\b", said, re.IGNORECASE):
        return False
    if verb is None:
        return (asked := _imperative(rule)) != "" and _forbids_to(said, asked)
    return re.search(rf"\b{_NOT} (?:ever )?{re.escape(verb[1])}\b", said, re.IGNORECASE) is not None


def _imperative(sentence: str) -> str:
    """The word that a sentence begins with: the verb of a request, if it is one."""
    first = _IMPERATIVE.match(sentence)
    return first[1].casefold() if first else ""


def _forbids_to(said: str, verb: str) -> bool:
    """Does a sentence forbid to do what a verb says; that it cannot be done, or is not done, is a report of work."""
    stem, whole = re.escape(verb.removesuffix("e")), re.escape(verb)
    not_to = r"\b(?:do not|don['’]?t|never|(?:must|should|may|shall)(?: not|n['’]?t)|not to) (?:ever )?"
    against = r"\b(?:avoid|stop|against|forb[ai]de|refrain(?:ed)? from) "
    forbids = rf"{not_to}(?:{whole}\b|be {stem}\w?e?d\b)|{against}{stem}\w?ing\b"
    return re.search(forbids, said, re.IGNORECASE) is not None


def _affirms_alike(said: str, rule: str, verb: re.Match[str]) -> bool:
    """Does a sentence demand or permit, with another verb that means the same as the one of a rule, to do it to what
    the rule speaks of: "you can change X now" of "do not modify X"."""
    others = same_verbs(verb[1])
    spared = _named(rule[verb.end() :])
    return any(
        done.casefold() in others and 2 * len(spared & _named(things)) >= len(spared) > 0
        for done, things in _AFFIRMED_OF.findall(said)
    )


def same_verbs(verb: str) -> frozenset[str]:
    """The verbs that mean the same, itself included; of one that is not listed none."""
    return next((verbs for verbs in _ALIKE if verb.casefold() in verbs), frozenset())


def _named(words: str) -> set[str]:
    """What the object that begins some words names, in the singular."""
    named = _OBJECT_FIRST.match(words)
    return (
        {one.removesuffix("s") for one in re.findall(r"\w{3,}", named[0].casefold()) if one not in _LITTLE}
        if named
        else set()
    )


def permits(said: str) -> bool:
    """Says a sentence that something is permitted, or no longer required, so that it asks for nothing by itself."""
    lifts = revokes(said) or any(pattern.search(said) for pattern in (_NOT_FORBIDDEN, _NOT_NEEDED))
    return lifts or _allows(said) or _allows_elsewhere(said) or _MAY.search(said) is not None


@remembered(MOST_REMEMBERED)
def revokes(sentence: str) -> bool:
    """Does a sentence say of a rule that it no longer holds: "forget the rule about the tests"."""
    return _REVOKES.search(sentence) is not None


@remembered(MOST_REMEMBERED)
def _lifting(rule: str) -> tuple[re.Pattern[str], ...]:
    """What lifts a rule: that it is not needed lifts none that only forbids, nor the reverse."""
    forbids = _FORBIDS.search(rule) or _HOLDS_ELSEWHERE.search(rule)
    demands = not forbids or _DEPENDS.search(rule) or _DEMANDED_VERB.search(rule)
    return (*((_NOT_FORBIDDEN,) if forbids else ()), *((_NOT_NEEDED,) if demands else ()))


@remembered(MOST_REMEMBERED)
def _allows(sentence: str) -> bool:
    return _ALLOWS.search(sentence) is not None


@remembered(MOST_REMEMBERED)
def _allows_elsewhere(sentence: str) -> bool:
    return _ALLOWS_ELSEWHERE.search(sentence) is not None and not _HOLDS_ELSEWHERE.search(sentence)


@remembered(MOST_REMEMBERED)
def _affirmed(sentence: str) -> frozenset[str]:
    """The verbs that a sentence demands, wants or permits."""
    return frozenset(map(str.casefold, _AFFIRMED.findall(sentence)))
