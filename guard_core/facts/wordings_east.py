"""Words by which instructions are known in Dutch, Polish, Russian and Arabic: ours.

As in `wordings`: a word such as "must" or "never" states a rule, and so does an imperative with a negation, which
follows the verb in Dutch and precedes it in the others.
"""

from __future__ import annotations

import re

_RULE = re.compile(
    r"\b(?:"
    # Dutch
    r"nooit|altijd|moet(?:en)?|je mag|mag je|(?:mag|mogen) (?:niet|geen|nooit|alleen)|verboden|verplicht"
    r"|uitsluitend|alleen|vermijd(?:en)?|zorg (?:er ?)?voor|let op"
    r"|minstens|minimaal|ten minste|hoogstens|maximaal|in plaats van|zonder te|tenzij"
    # Polish
    r"|nigdy|zawsze|musi(?:sz|my|cie)?|muszą|nie wolno|nie można|nie należy|należy|trzeba|tylko|wyłącznie|zabronion\w+"
    r"|zakazan\w+|wymagan\w+|obowiązkowo|koniecznie|co najmniej|co najwyżej|zamiast|bez \w+ania|unikaj(?:cie)?"
    r"|upewnij(?:cie)? się|chyba że"
    # Russian
    r"|никогда|всегда|обязательно|долж(?:ен|на|но|ны)|нельзя|запрещ[её]н\w*|только|исключительно|необходимо|следует"
    r"|избегай(?:те)?|не менее|не более|вместо|ни в коем случае|убедись|убедитесь|требуется|если не"
    # Arabic
    r"|يجب|لا بد|لابد|أبدا|أبدًا|أبداً|دائما|دائمًا|دائماً|ممنوع|يمنع|يُمنع|لا يجوز|لا يسمح|فقط|يلزم|تأكد|تجنب"
    r"|بدلا من|بدلاً من|على الأقل|على الأكثر"
    r")\b",
    re.IGNORECASE,
)
# What these words say of how things are: from a verb that reports something up to the word.
_STATED = re.compile(
    r"\b(?:ik (?:heb|had|zie|weet|kan|snap)|er (?:is|zijn|was|waren)|het (?:is|was)|is|zijn|was|waren|duurt|werkt)"
    r"(?: \w+){0,3}? (?:altijd|nooit|alleen|minstens|maximaal|minimaal)\b"
    r"|\b(?:jest|są|był\w*|mam|mamy|działa|trwa)(?: \w+){0,2}? (?:tylko|zawsze|nigdy|co najmniej)\b"
    r"|\b(?:zawsze|nigdy|tylko) (?:jest|są|był\w*|mam|mia\w+|działa\w*)\b"
    r"|\b(?:есть|был[аои]?|у меня|у нас|я|мы|работает|занимает)(?: \w+){0,2}? (?:только|всегда|никогда|не менее)\b"
    r"|\b(?:только|всегда|никогда) (?:был[аои]?|есть|падает|работа\w+|вид\w+)\b"
    r"|(?:هناك|يوجد|كان|كانت)(?: \w+){0,3}? (?:فقط|دائما|أبدا)",
    re.IGNORECASE,
)
_POLITE = r"(?:(?:alsjeblieft|alstublieft|graag|proszę|пожалуйста|من فضلك|رجاء|رجاءً)[,،]?\s+)?"
_REQUEST_WORDS = (
    # Dutch
    r"graag|alsjeblieft|alstublieft|kun je|kan je|kunt u|zou je|ik wil|ik zou|we moeten|laten we|ga (?:door|verder)",
    r"(?:voeg|verander|wijzig|verwijder|maak|schrijf|implementeer|controleer|vervang|hernoem|verplaats|toon|laat|zoek|vind"
    r"|lees|kopieer|verbeter|vertaal|antwoord|geef|zet|houd|gebruik|bouw|repareer|herstel|bereken|documenteer|analyseer"
    r"|vergelijk|installeer|genereer|migreer|(?:tel|los|leg|pas) (?:de|het|alle|dit|deze|dat))(?= )",
    # Polish
    r"proszę|czy możesz|możesz|mógłbyś|chcę|chciał(?:bym|abym)|potrzebuję|musimy",
    r"(?:doda|zmie[nń]|usu[nń]|utw[oó]rz|stw[oó]rz|napisz|zaimplementu|popraw|napraw|sprawd[zź]|przetestu|zaktualizu|uruchom"
    r"|pokaż|wyjaśni?|znajd[zź]|przeczyta|otw[oó]rz|skopiu|przenie[sś]|zastąp|przetłumacz|odpowiedz|poda|zr[oó]b|uży"
    r"|używa|policz|oblicz|por[oó]wna|przeanalizu|kontynuu|zatrzyma|zainstalu|wygeneru|zachowa|przepisz)j?(?:cie)?",
    # Russian
    r"пожалуйста|можешь|можете|мог(?:ли)? бы|я хочу|мне нужн[оаы]|нам нужн[оаы]|давай(?:те)?",
    r"(?:добав|измен|исправ|удал|созда|напиш|реализу|провер|обнов|запуст|пока[жз]|объясн|найд|прочита|откро|переимену"
    r"|перемест|скопиру|замен|улучш|оптимизиру|перевед|ответ|дай|сдела|использу|посчита|подсчита|состав|сравн|останов"
    r"|проанализиру|продолж[аи]?|установ|сгенериру|преобразу|перепиш|сохран|убер|опиш)(?:ь|и|й)?(?:те)?",
    # Arabic
    r"من فضلك|رجاء|هل يمكنك|أريد|أحتاج|نحتاج|احسب|أنشئ|اكتب|أضف|عدل|عدّل|احذف|أصلح|اختبر|افحص|تحقق|استخدم|استبدل|اشرح"
    r"|اعرض|ابحث|اقرأ|افتح|شغل|شغّل|ترجم|لخص|لخّص|قارن|حلل|حلّل|تابع|نفذ|نفّذ|حدث|حدّث|أعد|اجعل|أجب|اشطب|صحح|صحّح",
)
_REQUEST = re.compile(rf"{_POLITE}(?:{'|'.join(_REQUEST_WORDS)})\b", re.IGNORECASE)
_NEGATED = re.compile(
    rf"{_POLITE}(?:nie \w+(?:aj|uj|ij|yj|ej|ń|ób|isz|usz|uchamiaj|ierz)(?:cie)?\b"
    r"|не \w+(?:й|йте|и|ите|ь|ьте)\b|لا ت\w+)",
    re.IGNORECASE,
)
_DUTCH_NEGATION = re.compile(r"[^,;:]*\b(?:niet|geen)\b", re.IGNORECASE)
# Letters and words that Polish has and German has not, in which "nie" means "never"; in Polish it means "not".
_POLISH = re.compile(r"[ąćęłńśźż]|\b(?:w|z|jest|od|dla|przez|ten|tego|czy|jak)\b", re.IGNORECASE)


def is_polish(words: str) -> bool:
    """Is a sentence with "nie" Polish, as its letters or other words of it show."""
    return _POLISH.search(words) is not None


def states_rule(words: str) -> bool:
    """Does a sentence say what to do, or not to do, by its wording."""
    if _RULE.search(_STATED.sub("", words)) or forbids(words):
        return True
    return _REQUEST.match(words) is not None and _DUTCH_NEGATION.match(words) is not None


def forbids(words: str) -> bool:
    """Does a sentence begin with an imperative behind a negation."""
    return _NEGATED.match(words) is not None


def asks(words: str) -> bool:
    """Does a sentence of a user ask for something, by its first words."""
    return _REQUEST.match(words) is not None
