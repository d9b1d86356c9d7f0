"""Forms that edit messages as list policies do: results replaced or cut, arguments cleared, calls taken away.

`which` are places among the parts of that kind in their event, from 0; none named: all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, MEDIA, REASONING, RESULT, TEXT, text_sizes, tool_key, value_sizes
from guard_core.events import Event, MediaPart, Part, ReasoningPart, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.forms.base import GONE, SIZES, Form, Ints, LogColumns, PartColumns, brings_form

Bools = NDArray[np.bool_]
KIND_NAMES = {"text": TEXT, "reasoning": REASONING, "call": CALL, "result": RESULT, "media": MEDIA}
PART_TYPES = {CALL: ToolCallPart, RESULT: ToolResultPart, MEDIA: MediaPart, REASONING: ReasoningPart, TEXT: TextPart}


class Edit(Form, frozen=True):
    """A form that changes each part of one kind by itself."""

    which: tuple[int, ...] = ()

    @property
    def of(self) -> int:
        """The kind of part that it changes."""
        return RESULT

    def touches(self, kind: int) -> bool:
        return kind == self.of

    @property
    def is_local(self) -> bool:
        return True

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        chosen = self.chosen(parts)
        return {**parts, **{name: np.where(chosen, new, parts[name]) for name, new in self.sizes(parts).items()}}

    def chosen(self, parts: PartColumns) -> Bools:
        """Which parts are changed."""
        chosen = parts["kind"] == self.of
        if self.which:
            chosen &= np.isin(place_in_event(parts, self.of), self.which)
        return np.asarray(chosen & self.applies(parts))

    def message(self, event: Event) -> Event:
        place, changed = 0, False
        parts: list[Part] = []
        for part in event.parts:
            new: Part | None = part
            if isinstance(part, PART_TYPES[self.of]):
                new = self.part(part) if not self.which or place in self.which else part
                place += 1
            changed |= new is not part
            if new is not None:
                parts.append(new)
        return msgspec.structs.replace(event, parts=tuple(parts)) if changed else event

    def applies(self, parts: PartColumns) -> Bools:
        """Which parts of the kind are changed."""
        return np.ones(len(parts["kind"]), dtype=np.bool_)

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        """The columns of a part that is changed."""
        raise NotImplementedError

    def part(self, part: Any) -> Part | None:
        """The part in this form; the very same where it is not changed, None where it is removed."""
        raise NotImplementedError


def place_in_event(parts: PartColumns, kind: int) -> Ints:
    """Of every part of a kind, how many of that kind are before it in its event."""
    own, event = parts["kind"] == kind, parts["event"]
    before = np.cumsum(own) - own  # in the log; as many are before an event as before its first part
    of_event = np.where(np.diff(event, prepend=-1) > 0, before, 0)
    return np.asarray(before - np.maximum.accumulate(of_event))


def tools_of(parts: PartColumns) -> Ints:
    """The tool of every part; of a result without a name that of the call it answers."""
    answered = np.where(parts["answers"] >= 0, np.append(parts["tool"], 0)[parts["answers"]], 0)
    return np.asarray(np.where(parts["tool"] == 0, answered, parts["tool"]))


@cache
def _text_sizes(text: str) -> dict[str, int]:
    return text_sizes(text)


@brings_form
class Replaced(Edit, frozen=True):
    """Tool results of more than `over` characters replaced by `text`. `excluded` are tools whose results stay."""

    kind: ClassVar[str] = "replaced"
    text: str = ""
    over: int = -1
    excluded: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        return f"the result was replaced by {self.text[:60]!r}"

    @property
    def is_local(self) -> bool:
        """A result without a name has that of the call, which is another event's."""
        return not self.excluded

    def applies(self, parts: PartColumns) -> Bools:
        chosen = parts["chars"] > self.over
        if self.excluded:
            chosen &= ~np.isin(tools_of(parts), [tool_key(name) for name in self.excluded])
        return np.asarray(chosen)

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        sizes = _text_sizes(self.text)
        return {**sizes, "heuristic": parts["name_chars"] // 4 + sizes["heuristic"]}

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> Bools:
        """Results of the same size are taken to have another text, but for an empty one."""
        differs = super().differs(ledger, old, new)
        return np.asarray(differs | self.chosen(old)) if self.text else differs

    def part(self, part: ToolResultPart) -> Part:
        old = value_text(part.content)
        if old == self.text or len(old) <= self.over or part.name in self.excluded:
            return part
        return msgspec.structs.replace(part, content=self.text)


class Cut(NamedTuple):
    """What stays of texts of more than `over` characters: the first `head` and the last `tail`, and a marker of these
    sizes between them; a number for all, or one for each part."""

    head: Any
    tail: Any
    over: Any
    marker: dict[str, Any]


@brings_form
class CutToEnds(Edit, frozen=True):
    """Tool results (or, with `what` text, texts) of more than `over` characters cut to their first `head` and last
    `tail`, `marker` between them."""

    kind: ClassVar[str] = "ends"
    what: str = "result"
    head: int = 0
    tail: int = 0
    over: int = 0
    marker: str = ""

    @property
    def of(self) -> int:
        return KIND_NAMES[self.what]

    @property
    def cut(self) -> Cut:
        """What is cut of its parts."""
        return Cut(self.head, self.tail, self.over, _text_sizes(self.marker))

    @classmethod
    def of_each(cls, forms: Sequence[CutToEnds]) -> Form | None:
        if not forms or any(form.which for form in forms):
            return None
        cuts = [form.cut for form in forms]
        head, tail, over = (np.array(row, dtype=np.int64) for row in zip(*(cut[:3] for cut in cuts), strict=True))
        marker = {name: np.array([cut.marker[name] for cut in cuts]) for name in _text_sizes("")}
        return EachEnds(kinds=np.array([form.of for form in forms]), cuts=Cut(head, tail, over, marker))

    @property
    def words(self) -> str:
        last = f" and last {self.tail:,}" if self.tail else ""
        return f"the {self.what} was cut to its first {self.head:,}{last} characters"

    def applies(self, parts: PartColumns) -> Bools:
        cut = self.cut
        return np.asarray(parts["chars"] > np.maximum(cut.over, cut.head + cut.tail))

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        """Characters are exact; the other columns keep the old text's proportions."""
        head, tail, _, marker = self.cut
        length, old = head + tail, np.maximum(parts["chars"], 1)
        columns: dict[str, Any] = {
            name: marker[name] + parts[name] * length // old for name in SIZES if name not in ("name_chars", "id_chars")
        }
        columns["heuristic"] = parts["name_chars"] // 4 + columns["bytes"] // 4
        return {**columns, "chars": np.full(len(old), length + marker["chars"])}

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> Bools:
        return self.chosen(old)  # the marker may be as long as what is cut

    def part(self, part: ToolResultPart | TextPart) -> Part:
        old = part.text if isinstance(part, TextPart) else value_text(part.content)
        if len(old) <= max(self.over, self.head + self.tail):
            return part
        new = old[: self.head] + self.marker + (old[len(old) - self.tail :] if self.tail else "")
        name = "text" if isinstance(part, TextPart) else "content"
        return msgspec.structs.replace(part, **{name: new})


class EachEnds(CutToEnds, frozen=True):
    """`CutToEnds` that differ from part to part: the kind of part that each changes, and what it cuts."""

    kinds: Any = None
    cuts: Cut | None = None

    @property
    def of(self) -> Any:
        return self.kinds

    @property
    def cut(self) -> Cut:
        assert self.cuts is not None
        return self.cuts


@brings_form
class Arguments(Edit, frozen=True):
    """The arguments of calls replaced by a JSON value, `value`."""

    kind: ClassVar[str] = "arguments"
    value: Any = {}

    @property
    def of(self) -> int:
        return CALL

    @property
    def words(self) -> str:
        return "the arguments of the call were cleared"

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        sizes = value_sizes(self.value)
        return {**sizes, "heuristic": parts["name_chars"] // 4 + sizes["heuristic"]}

    def part(self, part: ToolCallPart) -> Part:
        return part if part.arguments == self.value else msgspec.structs.replace(part, arguments=self.value)


@brings_form
class WithoutCalls(Edit, frozen=True):
    """Calls taken away, or, with `before` or `after`, replaced by a text: those two and the tool's name between."""

    kind: ClassVar[str] = "without calls"
    before: str = ""
    after: str = ""

    @property
    def of(self) -> int:
        return CALL

    @property
    def words(self) -> str:
        return "the call was replaced by a text" if self.before or self.after else "the call was removed"

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        if not self.before and not self.after:
            return {"kind": GONE, **dict.fromkeys(SIZES, 0)}
        around, name = _text_sizes(self.before + self.after), parts["name_chars"]
        columns: dict[str, Any] = dict(around)
        for column in ("chars", "bytes", "utf16", "json_chars", "repr_chars"):
            columns[column] = around[column] + name
        return {**columns, "kind": TEXT, "heuristic": columns["bytes"] // 4, "name_chars": 0, "tool": 0}

    def part(self, part: ToolCallPart) -> Part | None:
        return TextPart(self.before + part.name + self.after) if self.before or self.after else None


@brings_form
class Removed(Edit, frozen=True):
    """Parts of one kind removed: text, reasoning, call, result or media."""

    kind: ClassVar[str] = "removed"
    what: str = "reasoning"

    @property
    def of(self) -> int:
        return KIND_NAMES[self.what]

    @property
    def words(self) -> str:
        return f"the {self.what} was removed"

    def sizes(self, parts: PartColumns) -> dict[str, Any]:
        return {"kind": GONE, **dict.fromkeys(SIZES, 0)}

    def part(self, part: Any) -> None:
        return None
