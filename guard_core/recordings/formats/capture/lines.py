"""How the lines of a capture are written and read: every request repeats the conversation, and the file does not.

The first line names the format. Each other line is one call of a model: `api`, `timestamp` (seconds since the epoch),
`status`, `milliseconds`, `request` and `response`, the bodies as they were sent (an event stream as its text). Where a
line has `like`, its request begins like that of the line with this `id`: `kept` messages of it precede those in
`request`, and the keys in `same` have the same values.
"""

from __future__ import annotations

from collections import deque
from typing import Any

from guard_core.recordings.reading.fields import JSON

NAME = "compaction-inspector-capture"  # in the first line
VERSION = 1  # raise it when a reader of the version before would misread the lines
LISTS = {"anthropic": "messages", "chat": "messages", "responses": "input", "gemini": "contents"}  # what grows, by API
LATEST = 8  # lines that a line may begin like: an agent has several conversations at once
FULL_EVERY = 50  # lines; one is written whole, so that a damaged line costs at most so many


class LostRequest(ValueError):
    """A line begins like one that is not in the file."""


class Shortener:
    """Gives each request of a capture the form in which its line has it."""

    def __init__(self) -> None:
        self._earlier: deque[tuple[int, str, JSON]] = deque(maxlen=LATEST)
        self.number = 0  # lines so far

    def shorten(self, api: str, request: JSON) -> JSON:
        """`id`, `request`, and what the request shares with an earlier one."""
        name, number = LISTS[api], self.number
        line: JSON = {"id": number, "request": request}
        if number % FULL_EVERY and (like := self._like(api, request)) is not None:
            at, earlier, shared = like
            same = [key for key, value in request.items() if key != name and key in earlier and earlier[key] == value]
            rest = {key: value for key, value in request.items() if key not in same}
            line |= {"like": at, "kept": shared, "same": same, "request": rest | {name: request[name][shared:]}}
        return line

    def written(self, api: str, request: JSON) -> None:
        """The line of this request is in the file: later ones may begin like it."""
        self._earlier.append((self.number, api, request))
        self.number += 1

    def _like(self, api: str, request: JSON) -> tuple[int, JSON, int] | None:
        """The earlier request that shares most of its beginning with this one: its id, itself, the messages shared."""
        best: tuple[int, JSON, int] | None = None
        for number, of, earlier in reversed(self._earlier):
            shared = _shared(earlier.get(LISTS[api]), request.get(LISTS[api])) if of == api else 0
            if shared > (best[2] if best else 0):
                best = number, earlier, shared
        return best


class Expander:
    """Gives the requests of a capture back, line by line."""

    def __init__(self) -> None:
        self._earlier: dict[int, JSON] = {}

    def expand(self, line: JSON) -> JSON:
        """The request of a line, whole. Raises LostRequest, and ValueError for a line that cannot be right."""
        request, number = line.get("request"), line.get("id")
        if not isinstance(request, dict):
            raise ValueError("a line without a request")
        if "like" in line:
            request = self._whole(line, request)
        if isinstance(number, int):
            self._earlier[number] = request
            while len(self._earlier) > LATEST:
                self._earlier.pop(next(iter(self._earlier)))
        return request

    def _whole(self, line: JSON, rest: JSON) -> JSON:
        like, kept, name = line["like"], line.get("kept"), LISTS.get(str(line.get("api")), "")
        earlier = self._earlier.get(like) if isinstance(like, int) else None
        if earlier is None:
            raise LostRequest("it begins like a request that is not in the file")
        before, after = earlier.get(name), rest.get(name)
        if not isinstance(before, list) or not isinstance(after, list) or not isinstance(kept, int):
            raise ValueError("a line that begins like another one has no list of messages")
        if not 0 <= kept <= len(before):
            raise ValueError(f"it keeps {kept} messages of a request that has {len(before)}")
        same = line.get("same")
        shared = {key: earlier[key] for key in same if isinstance(key, str) and key in earlier} if same else {}
        return {**shared, **rest, name: [*before[:kept], *after]}


def _shared(earlier: Any, later: Any) -> int:
    """How many items two lists have in common at their beginning."""
    if not isinstance(earlier, list) or not isinstance(later, list):
        return 0
    return next(
        (at for at, (one, other) in enumerate(zip(earlier, later)) if one != other), min(len(earlier), len(later))
    )
