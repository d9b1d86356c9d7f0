"""The view of every step of a recorded run, and whether a view of ours is the same."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from guard_core.conformance.libraries.scripts import LibraryRun, arguments_json, indices
from guard_core.conformance.vectors import VectorError
from guard_core.events import Event, MediaPart, Role, TextPart, ToolCallPart, ToolResultPart, value_text
from guard_core.forms import PRUNED, get_form
from guard_core.policies.hermes.messages import is_merged, is_stand_in
from guard_core.requests import materialise
from guard_core.sessions import Session
from guard_core.views import Rewritten, Span, Synthetic, View

COMPARED = ("role", "chars", "text", "sha", "calls", "args_chars", "images")
TEXTS = ("text", "sha")  # of a message of which we know the size alone


class Shown(msgspec.Struct, frozen=True):
    """One message of a view: message `index` of the script (-1: an inserted one) and, where it is not verbatim, what
    is known of it."""

    index: int
    facts: dict[str, Any] | None = None

    @property
    def is_verbatim(self) -> bool:
        return self.facts is None

    def __str__(self) -> str:
        name = "an inserted message" if self.index < 0 else f"message {self.index}"
        if self.facts is None:
            return name
        facts = ", ".join(f"{key} {self.facts[key]}" for key in ("role", "chars", "text") if key in self.facts)
        return f"{name} ({facts})" if self.index < 0 else f"{name} rewritten ({facts})"


def recorded_views(run: LibraryRun) -> Iterator[list[Shown]]:
    """The view of every step of a file's run."""
    view: list[Shown] = []
    known: dict[str, dict[str, Any]] = {}
    last = 0
    for step in run.steps:
        view += [Shown(index) for index in range(last, step.at) if not run.is_outside(index)]
        last = max(last, step.at)
        view = _changed(view, step.detail, known)
        yield list(view)


def _changed(view: list[Shown], detail: dict[str, Any], known: dict[str, dict[str, Any]]) -> list[Shown]:
    if "view" in detail:
        view = [item for entry in detail["view"] for item in _entries(entry, known)]
        return _rewritten(view, detail.get("view_rewritten", ()))
    removed = set(indices(detail.get("gone", ())))
    gone_new = list(detail.get("gone_new", ()))
    remaining = []
    for item in view:
        sha = (item.facts or {}).get("sha")
        if item.index < 0 and sha in gone_new:
            gone_new.remove(sha)
        elif item.index < 0 or item.index not in removed:
            remaining.append(item)
    return _rewritten(remaining, detail.get("rewritten", ()))


def _entries(entry: Any, known: dict[str, dict[str, Any]]) -> list[Shown]:
    """What one item of a `view` names."""
    if not isinstance(entry, dict):
        return [Shown(index) for index in indices([entry])]
    if "again" in entry:
        if entry["again"] not in known:
            raise VectorError(f"no message with the hash {str(entry['again'])[:12]!r} was described before")
        return [Shown(-1, known[entry["again"]])]
    if "sha" in entry:
        known[entry["sha"]] = entry
    return [Shown(-1, entry)]


def _rewritten(view: list[Shown], groups: Any) -> list[Shown]:
    facts: dict[int, dict[str, Any] | None] = {}
    for group in groups:
        for index in indices(group["of"]):
            facts[index] = None if group.get("verbatim") else group
    return [Shown(item.index, facts[item.index]) if item.index in facts else item for item in view]


def own_view(view: View, session: Session, numbers: tuple[int, ...], joint: str) -> list[Shown]:
    """A view of ours. Of a message of which only the length is known, the text and its hash are left out. `joint` is
    between the texts of one message."""
    shown: list[Shown] = []
    wrap: Synthetic | None = None  # what the message that follows has around its own text
    for segment in view:
        events = materialise((segment,), session)
        if is_merged(segment):
            assert isinstance(segment, Synthetic)
            wrap = segment
        elif isinstance(segment, Synthetic):
            facts = facts_of(events[0])
            if segment.text is None:
                facts = {"role": facts["role"], "chars": segment.bytes}
            shown.append(Shown(-1, _without_words(facts) if is_stand_in(segment) else facts))
        elif isinstance(segment, Span | Rewritten):
            start = segment.start if isinstance(segment, Span) else segment.event
            form = segment.form if isinstance(segment, Span) else ""
            knows_text = not form or get_form(form).knows_text
            for event, message in enumerate(events, start=start):
                if wrap is None and message is session.events[event]:
                    shown.append(Shown(numbers[event]))
                    continue
                facts = facts_of(message, joint)
                facts = facts if knows_text else _without_words(facts)
                if not wording_is_known(form) or (wrap is not None and wrap.text is None):
                    facts = {"role": facts["role"], "calls": facts["calls"], "images": facts["images"]}
                elif wrap is not None and wrap.text is not None:
                    facts = {**_without_words(facts), "chars": facts["chars"] + len(wrap.text)}
                shown.append(Shown(numbers[event], facts))
                wrap = None
    return shown


def _without_words(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name not in TEXTS}


def with_joined_users(shown: list[Shown], events: tuple[Event, ...]) -> list[Shown]:
    """A view in which adjacent messages of the user are one, their texts without anything in between."""
    joined: list[Shown] = []
    for item in shown:
        if joined and _role(item, events) == _role(joined[-1], events) == "user":
            joined[-1] = _joined(joined[-1], item, events)
        else:
            joined.append(item)
    return joined


def _joined(first: Shown, second: Shown, events: tuple[Event, ...]) -> Shown:
    """Two messages of the user as one; one of the two where the other is empty."""
    before, after = _facts(first, events), _facts(second, events)
    for item, facts in ((second, before), (first, after)):
        if not facts["chars"] and not facts.get("images"):
            return item
    if "text" not in before or "text" not in after:
        return Shown(first.index, {"role": "user", "chars": before["chars"] + after["chars"]})
    text, images = before["text"] + after["text"], before["images"] + after["images"]
    facts = {"role": "user", "chars": len(text), "text": text, "sha": sha_of(text), "images": images}
    return Shown(first.index, facts)


def sha_of(text: str) -> str:
    """The hash of a text as files have it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def wording_is_known(form: str) -> bool:
    """Does a form write what the library writes: the text of Hermes' pruned results is ours."""
    return form != PRUNED


def facts_of(message: Event, joint: str = "\n") -> dict[str, Any]:
    """What a file says of a message that is not verbatim."""
    texts = [part.text for part in message.parts if isinstance(part, TextPart)]
    texts += [value_text(part.content) for part in message.parts if isinstance(part, ToolResultPart)]
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    text = joint.join(texts)
    return {
        "role": role_of(message),
        "chars": len(text),
        "text": text,
        "sha": sha_of(text),
        "calls": [call.id for call in calls],
        "args_chars": [len(arguments_json(call.arguments)) for call in calls],
        "images": sum(isinstance(part, MediaPart) for part in message.parts),
    }


def role_of(message: Event) -> str:
    """The role that a file gives a message."""
    if any(isinstance(part, ToolResultPart) for part in message.parts):
        return "tool"
    return {Role.USER: "user", Role.MODEL: "assistant", Role.SYSTEM: "system"}[message.role]


class ViewMismatch(NamedTuple):
    """What differs between two views, and the two values, which are never the same."""

    what: str
    expected: Any
    got: Any


def difference(expected: list[Shown], got: list[Shown], events: tuple[Event, ...]) -> ViewMismatch | None:
    """The first difference between two views; `events` are the script's messages."""
    for place, (theirs, ours) in enumerate(zip(expected, got, strict=False)):
        difference = _message_difference(theirs, ours, events)
        if difference is not None:
            return difference._replace(what=f"message {place} of the view, {difference.what}")
    if len(expected) != len(got):
        return ViewMismatch("messages in the view", len(expected), len(got))
    return None


def _message_difference(theirs: Shown, ours: Shown, events: tuple[Event, ...]) -> ViewMismatch | None:
    """What differs between two messages.

    A rewritten message whose marker is gone is an inserted one in the files, so that one of the two may be inserted.
    Messages with the same role, text and calls cannot be distinguished, whatever they are named: libraries that ignore
    pictures do not even keep those.
    """
    are_verbatim = theirs.is_verbatim and ours.is_verbatim
    if are_verbatim and (theirs.index == ours.index or _named(events[theirs.index]) == _named(events[ours.index])):
        return None
    if theirs.index >= 0 and ours.index >= 0 and not _are_alike(_facts(theirs, events), _facts(ours, events)):
        if theirs.index != ours.index:
            return ViewMismatch("which message", str(theirs), str(ours))
        if theirs.is_verbatim or ours.is_verbatim:
            return ViewMismatch("whether it is rewritten", str(theirs), str(ours))
    return _fact_difference(_facts(theirs, events), _facts(ours, events))


def _named(message: Event) -> tuple[Any, ...]:
    """What the files know a message by that is verbatim."""
    facts = facts_of(message)
    return facts["role"], facts["text"], tuple(facts["calls"])


def by_first_alike(indices: list[int], events: tuple[Event, ...]) -> list[int]:
    """The indices of messages of the script, each replaced by that of the first message that it cannot be told apart
    from: of empty answers, a file may name any."""
    first: dict[tuple[Any, ...], int] = {}
    names = [_named(event) for event in events]
    for index, name in enumerate(names):
        first.setdefault(name, index)
    return sorted(first[names[index]] if index < len(names) else index for index in indices)


def _facts(shown: Shown, events: tuple[Event, ...]) -> dict[str, Any]:
    return facts_of(events[shown.index]) if shown.facts is None else shown.facts


def _role(shown: Shown, events: tuple[Event, ...]) -> str:
    return role_of(events[shown.index]) if shown.facts is None else str(shown.facts["role"])


def _are_alike(theirs: dict[str, Any], ours: dict[str, Any]) -> bool:
    """Are two messages known to have the same text, and everything else of them too."""
    return "sha" in theirs and "sha" in ours and _fact_difference(theirs, ours) is None


def _fact_difference(theirs: dict[str, Any], ours: dict[str, Any]) -> ViewMismatch | None:
    for name in COMPARED:
        if name in theirs and name in ours and theirs[name] != ours[name]:
            return ViewMismatch(name, theirs[name], ours[name])
    return None
