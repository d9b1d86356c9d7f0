"""How a text is compared with words that it may quote: in other letters, marks and dashes, and with what a writer adds
around words that it repeats."""

from __future__ import annotations

import html
import re

# Typography that a summariser changes when it quotes: marks of every shape are one mark, dashes of every length one.
_SIGNS = {ord(mark): "'" for mark in '"`´‘’‚‛“”„‟′″‹›«»'} | {ord(dash): "-" for dash in "‐‑‒–—―−"} | {ord("…"): "..."}
_RUNS = {sign: re.compile(sign + "{2,}") for sign in "'-"}
# What a writer adds around words that it repeats: the escapes of a string in JSON or Markdown, the marks of a block
# quote (CommonMark 0.31.2, 5.1), of code (6.1) and of emphasis (6.2). An underscore is that only if it can be no name.
_ADDED = re.compile(r"[\\&*_>`]")
_ESCAPE = re.compile(r"""\\(?:u([0-9a-fA-F]{4})|([nrt])|(["'`\\/*_#>.!+-]))""")
# Each begins with a character that is searched for at once: most texts have none of them.
_QUOTED = re.compile(r"\n[ \t]*>[> \t]*")
_STARS = re.compile(r"\*+")
_UNDERSCORES = re.compile(r"_(?<!\w_)(?:([^\W\d_]+)_|(_?)(?=[^\s_])([^_\n]{0,300}\s[^_\n]{0,300}(?<=\S))\2_)(?!\w)")
_NEGATES = re.compile(r"\b(?:not|never|(?:do|must|should)n'?t|avoid)(?: ever| to)? $")  # of words that are normalised
LONGEST_NEGATION = 20  # characters
_LETTERS = re.compile("[0-9a-z]+")  # in words that are normalised
# Scripts of which a character is a syllable or a word: kana, CJK ideographs with their extensions, Hangul.
KANA, HANGUL = "\u3040-\u30ff", "\uac00-\ud7af"
HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
WIDE = 3  # ours: a Chinese or Japanese character says about as much as so many Latin letters
_WIDE = re.compile(f"[{KANA}{HAN}{HANGUL}]")
Runs = tuple[tuple[str, ...], ...]


def width(words: str) -> int:
    """How many characters some words have, one that says as much as several counted as WIDE."""
    return len(words) + (WIDE - 1) * (0 if words.isascii() else len(_WIDE.findall(words)))


def normalised(text: str) -> str:
    """Words without what a quotation may change: letter case, runs of whitespace, the shapes of quotation marks,
    dashes and ellipses, and dashes by themselves, which put lines on one line and begin the items of lists."""
    # Of the signs two are ASCII: most texts have no others.
    words = text.replace('"', "'").replace("`", "'") if text.isascii() else text.translate(_SIGNS)
    for sign, runs in _RUNS.items():
        if 2 * sign in words:
            words = runs.sub(sign, words)
    words = f" {' '.join(words.casefold().split())} "
    while " - " in words:
        words = words.replace(" - ", " ")
    return words.strip()


def readings(text: str) -> str:
    """A text normalised, a line for every way to read it: as it stands and, where that is another text, without the
    marks of Markdown and the escapes of strings that are put around words when they are repeated."""
    words = normalised(text)
    plain = other_reading(text, words)
    return f"{words}\n{plain}" if plain else words


def other_reading(text: str, words: str) -> str:
    """The second of the `readings` of a text, of which `words` are the first; "" where there is none."""
    plain = normalised(_plain(text)) if _ADDED.search(text) else words
    return "" if plain == words else plain


def _plain(text: str) -> str:
    """A text without block quotes, code marks, emphasis and the escapes of JSON, Markdown and HTML."""
    text = _QUOTED.sub("\n", "\n" + html.unescape(unescaped(text)))
    text = _STARS.sub(_star, text.replace("`", ""))
    return _UNDERSCORES.sub(lambda match: match[1] or match[3], text)


def unescaped(text: str) -> str:
    """A text without the escapes of JSON and Markdown."""
    return _ESCAPE.sub(_character, text)


def _star(match: re.Match[str]) -> str:
    """Stars that no emphasis begins or ends with; "" for those of an emphasis."""
    before, after = match.string[match.start() - 1], match.string[match.end() : match.end() + 1]
    begins = not (before.isalnum() or before == "_") and after.strip()
    ends = before.strip() and not (after.isalnum() or after == "_")
    return "" if len(match[0]) <= 3 and (begins or ends) else match[0]


def _character(match: re.Match[str]) -> str:
    code, space, sign = match.groups()
    return chr(int(code, 16)) if code else " \n"[space == "n"] if space else sign


def says(text: str, words: str) -> bool:
    """Does one of the `readings` of a text have the words in one of theirs."""
    return any(one in text for one in words.split("\n"))


def asserts(text: str, words: str) -> bool:
    """The same of words that no negation stands before: "do not migrate it" has "migrate it", and says the opposite.
    Known in English alone."""
    return any(_has_affirmed(text, one) for one in words.split("\n"))


def _has_affirmed(text: str, words: str) -> bool:
    place = text.find(words)
    while place >= 0:
        if not _NEGATES.search(text[max(0, place - LONGEST_NEGATION) : place]):
            return True
        place = text.find(words, place + 1)
    return False


def letters_of(text: str) -> tuple[str, ...]:
    """A text, and where it has escapes also the text without them, each without marks: one of the two has every run of
    ASCII letters and digits that one of its `readings` has, which take much longer."""
    texts = [text]
    if "\\" in text or "&" in text:
        texts.append(html.unescape(_ESCAPE.sub(_character, text)))
    return tuple(text.replace("`", "").replace("*", "").replace("_", "").casefold() for text in texts)


def runs_of(words: str) -> Runs:
    """The runs of ASCII letters and digits in each of the `readings` of some words, the longest first."""
    return tuple(tuple(sorted(_LETTERS.findall(one), key=len, reverse=True)) for one in words.split("\n"))


def may_say(letters: tuple[str, ...], runs: Runs) -> bool:
    """May a text say some words, by its `letters_of` and their `runs_of`; if not, it does not say them. Loops, for
    generators take three times as long and it is asked of each text for each quotation."""
    for one in runs:
        for text in letters:
            for run in one:
                if run not in text:
                    break
            else:
                return True
    return False
