"""What words plainly say: tests of the checker's own, which know less than those of `facts` and share nothing with it.

Each is strict in one direction: where it says that a rule was lifted, a sentence said or not said, a todo closed or a
message no mere "go on", that is so, whatever the finder's tests make of it. Where it says nothing, only the shared
tests are left.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.events import Event, ToolCallPart, part_text

MOST_WORDS = 12  # of a message that only asks to continue
_LEAST_LETTERS = 3  # of a word that says what a rule is about
_WORDS = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")
_DENYING = frozenset(
    """
    never don't dont not must mustn't avoid always please should shall only ever you the and any all for that this
    """.split()  # noqa: SIM905
)
_LIFTING = ("no longer", "forget the rule", "you may ", "you can ", "lifted", "is allowed", "are allowed")
_ENDED = frozenset("dropped obsolete outdated revoked superseded withdrawn".split())  # noqa: SIM905
_NUMBERS = re.compile(r"\d+")
_LEAVING = (
    *("not ", "n't", "never", "only", "except", "unless", "until", "if ", "?", "once", "this time", "today"),
    "for now",
)
_NEGATING = frozenset("never not don't no nor none mustn't shouldn't can't cannot without avoid only".split())  # noqa: SIM905
_BEGINNING, _LEAST_SILENT = 3, 4  # letters by which a word is known in another form; words that a sentence must have
_FIRST_UNSPACED = "\u2e80"  # of the scripts that put no space between words
_AROUND = r"(ide_\w{1,40}|system-reminder|environment_details)"  # "ide_…": by extensions of editors
_FIRST, _LAST = re.compile(rf"\s*<{_AROUND}>"), re.compile(rf"</{_AROUND}>\s*")
_CODEX_REQUEST = "\n## My request for Codex:"  # behind what its extension says of the editor
_THREE, _TAG_ALONE = '"' * 3, re.compile(r"<([A-Za-z][\w.:-]{0,60})(?:\s[^<>]{0,300})?>")
_ASKED = frozenset(
    """
    answer ask command constraint convention critical directive feedback format goal guardrail guideline important
    instruction memory message note objective policy preference principle prompt query question reminder request
    requirement restriction role rule standard step style system task todo user
    """.split()  # noqa: SIM905
)  # in the name of a tag around what is asked for
_CALL = re.compile(r"\s+at \S")  # of those that an error lists
_PERMITS = re.compile(r"\b(?:you|we) (?:may|can)\b|\blonger\b", re.IGNORECASE)
_CLOSED = frozenset("completed complete done cancelled canceled deleted resolved".split())  # noqa: SIM905


def plainly_lifts(said: str, rule: str) -> bool:
    """Has a sentence each longer word of a rule but for its "never", a word that lifts, and none that leaves it."""
    folded = " ".join(said.casefold().replace("’", "'").split())
    about = {word for word in _long_words(rule) if word not in _DENYING}
    is_lifting = any(one in folded for one in _LIFTING) and not any(
        one in folded.replace("no longer", "") for one in _LEAVING
    )
    return len(about) > 1 and is_lifting and about <= set(_long_words(folded))


def plainly_says(text: str, sentence: str) -> bool:
    """Has one sentence or line of a text each longer word of a sentence, the same negations and numbers, no more than
    twice as many words, and none that says of a rule that it has ended."""
    words, about = _folded_words(sentence), {word for word in _long_words(sentence) if word not in _DENYING}
    for line in re.split(r"(?<=[.!?])\s|\n", text) if len(about) > 1 else ():
        said = _folded_words(line)
        if about <= set(said) and len(said) <= 2 * len(words) and not line.rstrip().endswith("?"):
            is_lifted = any(one in " ".join(line.casefold().split()) for one in _LIFTING) or _ENDED & {*said} - {*words}
            has_numbers = _NUMBERS.findall(line) == _NUMBERS.findall(sentence)
            if _NEGATING & set(said) == _NEGATING & set(words) and has_numbers and not is_lifted:
                return True
    return False


def plainly_lacks(text: str, sentence: str) -> bool:
    """Does no word of a text begin as one of the longer words of a sentence does, of which there are several."""
    about = {word[:_BEGINNING] for word in _long_words(sentence) if word not in _DENYING}
    is_spaced = not any(letter >= _FIRST_UNSPACED for letter in sentence)
    return is_spaced and len(about) >= _LEAST_SILENT and not about & {word[:_BEGINNING] for word in _long_words(text)}


def _folded_words(text: str) -> list[str]:
    return _WORDS.findall(text.casefold().replace("’", "'"))


def _long_words(text: str) -> list[str]:
    return [word for word in _folded_words(text) if len(word) >= _LEAST_LETTERS]


def typed(event: Event) -> list[str]:
    """The texts of a message without what an editor or an agent put before and behind what a person wrote; as they are
    where nothing else is left."""
    texts = [part_text(part) for part in event.parts]
    return [own for text in texts if (own := _without_blocks(text))] or texts


def _without_blocks(text: str) -> str:
    said = text.strip()
    if said.startswith("# ") and _CODEX_REQUEST in said:
        return said.split(_CODEX_REQUEST, 1)[1].strip()
    start, stop = 0, len(said)
    while (block := _FIRST.match(said, start)) and (end := said.find(f"</{block[1]}>", block.end())) >= 0:
        start = end + len(f"</{block[1]}>")
    while (block := _LAST.fullmatch(said, max(said.rfind("</", start, stop), start), stop)) and (
        begun := said.rfind(f"<{block[1]}>", start, stop)
    ) >= 0:
        stop = begun
    said = said[start:stop].strip()
    if said.startswith("<teammate-message ") and said.endswith("</teammate-message>"):
        said = _of_team(said) or said
    return _behind_quoted(said)


def _of_team(said: str) -> str:
    """The words between the tags around what agents of a team wrote, those of its lead alone where it wrote any."""
    pieces = re.split(r"</teammate-message>\s*<teammate-message ", said.removesuffix("</teammate-message>"))
    heads = [piece.partition('">') for piece in pieces]
    if any('teammate_id="team-lead"' in head + '"' for head, _, _ in heads):
        heads = [item for item in heads if 'teammate_id="team-lead"' in item[0] + '"']
    return "\n\n".join(words for _, _, text in heads if (words := _task(text.strip())))


def _task(said: str) -> str:
    """A task that an agent of the team assigns is JSON: its subject and its description are the words."""
    if not said.startswith('{"type":"task_assignment"'):
        return said
    try:
        task = json.loads(said)
    except (ValueError, RecursionError):
        return said
    texts = [text for key in ("subject", "description") if isinstance(text := task.get(key), str) and text]
    return "\n".join(texts) or said


def own_words(text: str) -> str:
    """A text without what is quoted in it: between tags or three quotation marks on lines of their own, behind the
    marks of block quotes, or an error with the calls below it; all of it where nothing else is left."""
    lines = text.split("\n")
    calls = [bool(_CALL.match(line)) for line in lines]
    calls = [is_call and True in (*calls[max(i - 1, 0) : i], *calls[i + 1 : i + 2]) for i, is_call in enumerate(calls)]
    errors = [not is_call and calls[i + 1 : i + 2] == [True] for i, is_call in enumerate(calls)]
    lines = [
        line[: line.find(":") + 1] if is_error else line
        for line, is_call, is_error in zip(lines, calls, errors, strict=True)
        if not is_call
    ]
    own = "\n".join(line for line, is_quoted in zip(lines, _quoted(lines), strict=True) if not is_quoted)
    return own if own.strip() else text


def _behind_quoted(text: str) -> str:
    """A text without what is quoted at its beginning; all of it where nothing else is left."""
    lines = text.split("\n")
    own = [place for place, is_quoted in enumerate(_quoted(lines)) if not is_quoted and lines[place].strip()]
    is_behind = bool(own) and any(map(str.strip, lines[: own[0]]))
    return "\n".join(lines[own[0] :]).strip() if is_behind else text


def _quoted(lines: list[str]) -> list[bool]:
    """Which lines are behind a ">", between three marks, or between tags that do not say that what is asked for is in
    them."""
    quoted = [line[:4].lstrip(" ").startswith(">") for line in lines]
    until = -1
    for place, line in enumerate(lines):
        if place <= until:
            continue
        tag = _TAG_ALONE.fullmatch(line.strip())
        is_mark = line.count(_THREE) % 2 == 1 and not tag
        if tag and not _ASKED.intersection(re.split(r"s?[-_.:]|s$|$", tag[1].casefold())):
            ends = (later for later in range(place + 1, len(lines)) if lines[later].rstrip().endswith(f"</{tag[1]}>"))
        elif is_mark:
            ends = (later for later in range(place + 1, len(lines)) if lines[later].count(_THREE) % 2)
        else:
            continue
        until = next(ends, -1)
        for inside in range(place, until + 1):
            is_at_end = inside in (place, until) and is_mark
            quoted[inside] |= not is_at_end or lines[inside].strip() == _THREE
    return quoted


def is_long(event: Event) -> bool:
    """Has a sentence of a message so many words that it says more than to go on, without what an agent puts in tags and
    what permits something."""
    text = " ".join(re.sub(r"<[^<>]*>", " ", one) for one in typed(event))
    said = (one for one in re.split(r"[.!?]\s|\n", text) if not _PERMITS.search(one))
    return any(len(one.split()) > MOST_WORDS for one in said)


def is_closed(todo: str, events: Iterable[Event]) -> bool:
    """Does the last of some messages that names a todo, as an item of a list with a status or a box, call it done."""
    calls = (part for event in events for part in event.parts if isinstance(part, ToolCallPart))
    states = [state for call in calls for state in _states(todo, call.arguments)]
    return bool(states) and states[-1]


def _states(todo: str, value: Any) -> Iterator[bool]:
    """Whether a todo is done, at each place of the arguments of a call that says so."""
    if isinstance(value, dict):
        if todo in (" ".join(text.split()) for text in value.values() if isinstance(text, str)):
            yield str(value.get("status", "")).casefold() in _CLOSED
        else:
            for one in value.values():
                yield from _states(todo, one)
    elif isinstance(value, list):
        for one in value:
            yield from _states(todo, one)
    elif isinstance(value, str):
        for line in value.splitlines():
            if line.rstrip().endswith(f"] {todo}"):
                yield line.lstrip(" -*+").casefold().startswith("[x]")
