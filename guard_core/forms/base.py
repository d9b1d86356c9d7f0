"""What a form is: how it changes the parts of the log, in columns and as messages; and forms by their names.

A name is the kind of the form and its values as JSON (`replaced:{"text":"[cleared]"}`), so that a stored view says by
itself how its messages are made; several forms one after the other are joined by `+`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import Any, ClassVar, Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from guard_core.costs import CALL, MEDIA, REASONING, RESULT
from guard_core.errors import GuardError
from guard_core.events import Event

Ints = NDArray[np.int64]
PartColumns = dict[str, Ints]
GONE = -1  # kind of a part that a form removes: it has no size
MOST_KNOWN = 8_192  # ours: forms that are found by their names; a policy that has each result rewritten names one each
# Columns of a part that are 0 where a form removes it.
_NAMES_AND_TEXT = ("name_chars", "id_chars", "chars", "bytes", "utf16", "non_ascii", "wide")
SIZES = (*_NAMES_AND_TEXT, "json_chars", "repr_chars", "lines", "separators", "heuristic")


class LogColumns(Protocol):
    """The columns of a log that a form is priced by; a ledger has them (guard_core.ledger)."""

    @property
    def events(self) -> dict[str, Ints]: ...

    @property
    def parts(self) -> PartColumns: ...

    @property
    def event_count(self) -> int: ...

    def by_event(self, values: Ints) -> Ints:
        """Sums per event of values that stand per part."""
        ...


class Form(msgspec.Struct, frozen=True):
    """How a policy rewrites events without a summariser.

    A form changes some parts of the log (a tool result is pruned or capped) and leaves the others as they are. What it
    saves follows from the sizes of the parts alone, so that prefix sums price a rewrite of a thousand results like any
    other span; the changed texts are made only when a view is materialised.
    """

    kind: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The name that gives this form again (`get_form`)."""
        values = {name: getattr(self, name) for name in self.__struct_fields__}
        plain = _defaults(type(self))
        given = {name: value for name, value in values.items() if value != plain[name]}
        return f"{self.kind}:{msgspec.json.encode(given, order='deterministic').decode()}" if given else self.kind

    @property
    def words(self) -> str:
        """What it did to a message, for a person."""
        raise NotImplementedError

    def touches(self, kind: int) -> bool:
        """May it change parts of a kind (guard_core.costs)."""
        raise NotImplementedError

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        """The columns of parts (guard_core.costs.PART_COLUMNS) as the form leaves them; removed parts are GONE."""
        raise NotImplementedError

    def message(self, event: Event) -> Event:
        """The event in this form; the very same where nothing changes."""
        raise NotImplementedError

    @property
    def keeps_beginning(self) -> bool:
        """Do the parts that it changes still begin as they did."""
        return False

    @property
    def knows_text(self) -> bool:
        """Are the texts that it writes known, or is only their size modelled."""
        return True

    @property
    def is_local(self) -> bool:
        """Does what it makes of an event follow from that event's own columns alone."""
        return False

    @classmethod
    def of_each(cls, forms: Sequence[Any]) -> Form | None:
        """A form that does to each part of a log what the form of that place does, among as many of this kind; None
        where there is none. It has no name."""
        return None

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        """Which parts it changes, by the columns before and after it. Forms that may write a text as long as the one in
        its place override it."""
        changed = old["kind"] != new["kind"]
        for name in ("bytes", "chars", "heuristic"):
            changed = changed | (old[name] != new[name])
        return np.asarray(changed)

    def changes(self, ledger: LogColumns, column: str, parts: PartColumns | None = None) -> Ints:
        """What the form adds to a column of the ledger's events (mostly below 0). `parts` are the columns of the parts
        as it leaves them, where they are known."""
        if column not in _OF_EVENT and column not in _OF_TEXT:
            return np.zeros(ledger.event_count, dtype=np.int64)
        old = ledger.parts
        new = self.parts(ledger, old) if parts is None else parts
        if column in _OF_TEXT:
            tokens, total = ledger.events[column], ledger.events["bytes"]
            saved = self.changes(ledger, "bytes", new)
            return np.asarray(np.where(total > 0, saved * tokens // np.maximum(total, 1), 0))
        sizes = _OF_EVENT[column]
        return ledger.by_event(sizes(new) - sizes(old))


@cache
def _defaults(form: type[Form]) -> dict[str, Any]:
    """The values of a form that its name leaves out. Looked up once: a replay names thousands of forms."""
    return {field.name: field.default for field in msgspec.structs.fields(form)}


def _of_kind(parts: PartColumns, kind: int, column: str) -> Ints:
    return np.asarray(np.where(parts["kind"] == kind, parts[column], 0))


def _text_size(parts: PartColumns, column: str) -> Ints:
    """Characters or bytes of texts, as the column says. The name of a called tool and the space behind it are part of
    a call's text; names are taken as ASCII."""
    names = np.where(parts["kind"] == CALL, parts["name_chars"] + 1, 0)
    return np.asarray(np.where(parts["kind"] == MEDIA, 0, parts[column]) + names)


# Columns of events that a form changes in proportion to their bytes.
_OF_TEXT = ("lexical_tokens", "tokenizer_tokens")
# The columns of events that a form may change, of the parts that they are the sums of.
_OF_EVENT: dict[str, Callable[[PartColumns], Ints]] = {
    "chars": lambda parts: _text_size(parts, "chars"),
    "bytes": lambda parts: _text_size(parts, "bytes"),
    "text_tokens": lambda parts: parts["heuristic"],
    "reasoning_bytes": lambda parts: _of_kind(parts, REASONING, "bytes"),
    "call_bytes": lambda parts: _of_kind(parts, CALL, "bytes"),
    "result_bytes": lambda parts: _of_kind(parts, RESULT, "bytes"),
    "media_bytes": lambda parts: _of_kind(parts, MEDIA, "bytes"),
}


class JoinedForms(Form, frozen=True):
    """Several forms, one after the other."""

    forms: tuple[Form, ...]

    @property
    def name(self) -> str:
        return "+".join(form.name for form in self.forms)

    @property
    def words(self) -> str:
        return "; ".join(form.words for form in self.forms)

    @property
    def keeps_beginning(self) -> bool:
        return all(form.keeps_beginning for form in self.forms)

    @property
    def knows_text(self) -> bool:
        return all(form.knows_text for form in self.forms)

    def touches(self, kind: int) -> bool:
        return any(form.touches(kind) for form in self.forms)

    def differs(self, ledger: LogColumns, old: PartColumns, new: PartColumns) -> NDArray[np.bool_]:
        by_one = (form.differs(ledger, old, new) for form in self.forms)
        return np.asarray(np.any([super().differs(ledger, old, new), *by_one], axis=0))

    def parts(self, ledger: LogColumns, parts: PartColumns) -> PartColumns:
        for form in self.forms:
            parts = form.parts(ledger, parts)
        return parts

    def message(self, event: Event) -> Event:
        for form in self.forms:
            event = form.message(event)
        return event


KINDS: dict[str, Callable[[str], Form]] = {}  # what makes a form of the text behind its kind


def brings_form(form: type[Form]) -> type[Form]:
    """Register a form whose name is its kind and its values as JSON. A policy brings its own in its module."""

    def make(values: str) -> Form:
        return msgspec.json.decode(values or "{}", type=form)

    KINDS[form.kind] = make
    return form


@lru_cache(MOST_KNOWN)
def get_form(name: str) -> Form:
    """A form by its name. Raises GuardError."""
    forms = tuple(_one(item) for item in form_names(name))
    return forms[0] if len(forms) == 1 else JoinedForms(forms)


@lru_cache(MOST_KNOWN)
def form_names(name: str) -> tuple[str, ...]:
    """The names of joined forms; a `+` within the JSON of one is not between two."""
    names, rest = [], name
    while True:
        end = _end(rest)
        names.append(rest[:end])
        if end >= len(rest):
            return tuple(names)
        rest = rest[end + 1 :]


def _end(text: str) -> int:
    """Where the first of joined names ends: at a `+` outside of strings."""
    quoted = escaped = False
    for place, char in enumerate(text):
        if escaped:
            escaped = False
        elif quoted and char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif char == "+" and not quoted:
            return place
    return len(text)


def _one(name: str) -> Form:
    """A form that is not joined of others. Raises GuardError."""
    kind, _, values = name.partition(":")
    try:
        return KINDS[kind](values)
    except (KeyError, ValueError, msgspec.MsgspecError):
        raise GuardError(f"there is no form {name[:40]!r}; known kinds are {', '.join(KINDS)}") from None
