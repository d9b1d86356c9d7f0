"""Sentences in other languages than English that say how things are with a word that rules have, too: ours.

"Der Test schlägt immer fehl" and "el servidor nunca arranca" state no rule, "Kommentare immer auf Deutsch" does. Such a
sentence has nothing of a rule but a word for how often or how much, and begins with what it is about: an article, a
pronoun, and more words than one before what is said of it. Which verbs are imperatives is known by `wordings`.
"""

from __future__ import annotations

import re

from guard_core.facts import wordings

# Words that say how often or how much, in rules and in reports alike.
_ADVERB = (
    r"niemals|nie|immer|stets|nur|ausschlie(?:ß|ss)lich|mindestens|h(?:ö|oe)chstens|ohne"
    r"|jamais|toujours|uniquement|seulement|au moins|nunca|jamás|siempre|solo|sólo|solamente|únicamente|al menos"
    r"|sempre|somente|apenas|pelo menos|soltanto|esclusivamente|almeno|mai|nooit|altijd|alleen|uitsluitend|minstens"
    r"|nigdy|zawsze|tylko|wyłącznie|co najmniej|никогда|всегда|только|исключительно|не менее"
)
_ADVERBS = re.compile(rf"\b(?:{_ADVERB})\b|总是|總是", re.IGNORECASE)
# What a statement begins with. Those who are spoken to, and "we", are left out: "wir committen nie auf main" is a rule.
_SUBJECT = re.compile(
    r"\W*(?:der|die|das|dieser|diese[s]?|ein|eine|mein|meine|unser|unsere|es|er|ich|hier|leider|jedes mal"
    r"|le|la|les|un|une|mon|ma|mes|notre|ce|cet|cette|ces|ça|cela|il|elle|ils|elles|ici|je|chaque fois"
    r"|el|los|las|una|mi|mis|nuestr[oa]s?|este|esta|estos|estas|esto|eso|aquí|cada vez"
    r"|o|a|os|as|um|uma|meu|minha|nosso|nossa|esse|essa|isso|isto|ele|ela|eu|aqui"
    r"|lo|i|gli|uno|mio|mia|questo|questa|quello|qui|ogni volta"
    r"|de|het|een|mijn|onze|deze|dit|dat|er|ik)\b|\W*[lj]['’]\w",
    re.IGNORECASE,
)
# What has no verb of its own: "the comments always in German".
_ELLIPSIS = re.compile(
    rf"\W*(?:\w+\s+)?[\w.-]+,?\s+(?:{_ADVERB})\s+(?:auf|in|mit|als|per|en|avec|con|em|com|op|met|po|w|z|на|по|в|с|как)\b",
    re.IGNORECASE,
)
_INFINITIVE = re.compile(r"\b(?!ge)[a-zäöü]+(?:en|ern|eln)[.!]*\s*$")  # at the end of a German rule
_FINITE = re.compile(
    r"\b(?:kann|konnten?|k(?:ö|oe)nnen|wollten?|wurden?|haben?|hat|hatten?|wird|werden)\b", re.IGNORECASE
)
# Words of Slavic languages, which have no articles, and the endings of their imperatives.
_SLAVIC = re.compile(r"[а-яё]{2}|[ąćęłńśźż]|\b(?:się|zawsze|nigdy|tylko)\b", re.IGNORECASE)
_IMPERATIVE = re.compile(r"\W*\w+(?:й|йте|ите|ь|ьте|[auiy]j|cie)\b", re.IGNORECASE)
# 总是 is asked for where it opens a clause or follows a word that asks; elsewhere it says what happens.
_ALWAYS_ASKED = re.compile(r"(?:^|[,，。;；:：、]|[请請要应應该該须須])\s*(?:总是|總是)")


def reports(sentence: str) -> bool:
    """Does a sentence that states a rule by its words only say how things are?"""
    words = sentence.strip()
    plain = _ADVERBS.sub("", words)
    if plain == words:
        return False
    if "总是" in words or "總是" in words:
        return _ALWAYS_ASKED.search(words) is None
    if wordings.asks(words) or wordings.states_rule(plain) or _ELLIPSIS.match(words):
        return False
    if _INFINITIVE.search(words) and not _FINITE.search(words):
        return False
    if _SUBJECT.match(words):
        return True
    return (
        bool(_SLAVIC.search(words)) and not _IMPERATIVE.match(words) and _ADVERBS.match(words.lstrip("-*•« ")) is None
    )
