"""When a text holds a quotation, and how much of a sentence's content a summary has."""

from __future__ import annotations

import re
from functools import lru_cache

from guard_core.findings.presence import normalised, readings

# A summary says in other words what a sentence says if one passage of it, so many sentences or lines, has this share of
# its content words. Measured on the 50 summaries that a person labelled in COMPINT (arXiv 2608.11242, github
# ZhiqiEliWang/compaction-integrity, judge_robustness_eval/balanced_blind_labeled.jsonl), and on each of them with 14
# sentences that its session never had: `python -m tests.benchmarks.measure_paraphrase FILE` measures both again.
# Over a whole summary the share agrees with 49 of 50, but takes 44 of 700 other sentences for paraphrased, and a third
# of them in summaries of 12,000 characters.
PASSAGE = 3
PARAPHRASE_CUT = 0.41
FEWEST_WORDS = 4  # content words, as the labelled sentences have; of shorter ones only a quotation counts
LABELLED, AGREES, AGREES_HELD_OUT, OTHERS, FALSE_OF_OTHERS = 50, 46, 44, 700, 7
# Words that any English text has, so that sharing them says nothing: articles, pronouns, prepositions, auxiliaries and
# the words that make a sentence a rule. Ours.
_COMMON = frozenset(
    """
    a all also always an and any are as at be been before but by can could did do does doesn't don't for from had has
    have he her his i if in into is it it's its just let let's make me more most must mustn't my need never no nor not
    of off on only or our out over own please shall she should shouldn't so such sure than that the their them then
    there these they this those to under up us was we were what when where which who will with would you your
    """.split()  # noqa: SIM905 - a hundred quotation marks less
)
# Scripts that put no space between words: kana, CJK ideographs with their extensions, Hangul.
_UNSPACED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f"
_WORD = re.compile(rf"[{_UNSPACED}]+|[^\W_{_UNSPACED}]+(?:'[^\W_{_UNSPACED}]+)?")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_ENDINGS = ("ing", "ed", "es", "s")  # taken off where at least three letters remain


def split_sentences(text: str) -> list[str]:
    """The sentences and lines of a text."""
    return _SENTENCE_END.split(text)


def quotation(text: str) -> str:
    """What is looked for of a text: its readings, a line each, without the marks that end a sentence. A single word is
    read only literally: `*.py` and `__init__` are names."""
    lines = (readings(text) if " " in normalised(text) else normalised(text)).split("\n")
    return "\n".join(words.rstrip(" .,;:!?。！？") or words for words in lines)


def has_unspaced(text: str) -> bool:
    """Has a text characters of a script that puts no space between words."""
    return _IS_UNSPACED.search(text) is not None


def quotes(text: str, words: str) -> bool:
    """Does a text, as `findings.presence.readings` gives it, hold a `quotation`: the same characters, and no part of
    a longer word. Scripts without spaces have no such limit."""
    return any(_has(text, one) for one in words.split("\n"))


def _has(text: str, words: str) -> bool:
    place = text.find(words) if words else -1
    while place >= 0:
        if not _joins(text, place) and not _joins(text, place + len(words)):
            return True
        place = text.find(words, place + 1)
    return False


def _joins(text: str, place: int) -> bool:
    """Are the characters on either side of a place of one word."""
    if not 0 < place < len(text):
        return False
    before, after = text[place - 1], text[place]
    return _is_letter(before) and _is_letter(after)


def _is_letter(char: str) -> bool:
    return (char.isalnum() or char == "_") and not _IS_UNSPACED.match(char)


@lru_cache(maxsize=4_096)
def content_words(text: str) -> frozenset[str]:
    """The words of a text that say what it is about, without letter case and common endings; of scripts without
    spaces every two characters that follow one another."""
    words: set[str] = set()
    for word in _WORD.findall(normalised(text)):
        if _IS_UNSPACED.match(word):
            words |= {word[place : place + 2] for place in range(max(1, len(word) - 1))}
        elif word not in _COMMON:
            words.add(_stem(word))
    return frozenset(words)


def _stem(word: str) -> str:
    if word.isascii():
        for ending in _ENDINGS:
            if word.endswith(ending) and len(word) - len(ending) >= 3:
                return word[: -len(ending)]
    return word


@lru_cache(maxsize=256)
def _passages(text: str) -> tuple[frozenset[str], ...]:
    """The content words of every passage of a text: PASSAGE sentences or lines that follow one another."""
    words = [content_words(sentence) for sentence in split_sentences(text) if sentence.strip()]
    return tuple(frozenset().union(*words[place : place + PASSAGE]) for place in range(len(words)))


def shared_words(sentence: str, text: str) -> float:
    """The largest share of a sentence's content words that a passage of a text has, from 0 to 1."""
    words = content_words(sentence)
    if not words:
        return 0.0
    return max((len(words & passage) for passage in _passages(text)), default=0) / len(words)


def paraphrases(text: str, sentence: str) -> bool:
    """Does a summary say what a sentence says in other words, as far as its content words show."""
    return len(content_words(sentence)) >= FEWEST_WORDS and shared_words(sentence, text) >= PARAPHRASE_CUT
