"""Guarding a live agent: any policy of the registry over its own message list, before and after every model call.

guard = Guard("contextguard", window=200_000, summarizer=AskedModel(summarise))
answer = client.chat.completions.create(messages=guard.before_call(messages), …)
guard.after_call(answer.usage.prompt_tokens)

The agent keeps its whole history and appends to it; the guard gives the messages to send in its place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, NamedTuple

import msgspec

from guard_core.bounds import MAX_TOKENS
from guard_core.errors import GuardError, SettingError
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.forms import get_form
from guard_core.guarding.dialects import LEFT_OUT, Dialect, Message, get_dialect, is_model, plain, readable, role_of
from guard_core.guarding.log import GuardedLog, LogMark
from guard_core.guarding.summarisers import host_loop
from guard_core.policies import get_policy
from guard_core.policies.base import Policy
from guard_core.recordings.formats.anthropic_messages import block_parts
from guard_core.recordings.reading import chat
from guard_core.replay import RequestDecision
from guard_core.requests import synthetic_text
from guard_core.sessions import Session
from guard_core.summaries.base import Summarizer, Todo
from guard_core.trace import CompactionRecord
from guard_core.views import Inserted, Rewritten, Segment, Span, Synthetic

UNSTABLE = ("cache_control",)  # keys that a client moves from message to message without a change of words


class Guard:
    """One conversation and the policy that guards it. Not for two threads at once.

    `policy` is the name of one of the registry, with its settings as keywords, or a policy; `window` in tokens, from 1
    on. Raises SettingError for another window or dialect.
    `dialect` says how messages are written: "openai" or "anthropic", or is one. Without a `summarizer` summaries
    are mechanical, of excerpts, as a policy makes them where its summariser fails.
    """

    def __init__(
        self,
        policy: Policy | str,
        *,
        window: int,
        dialect: Dialect | str = "openai",
        summarizer: Summarizer | None = None,
        **settings: Any,
    ) -> None:
        if not isinstance(window, int) or isinstance(window, bool) or not 1 <= window <= MAX_TOKENS:
            raise SettingError(
                f"window is a whole number of tokens from 1 to {MAX_TOKENS:,}, such as 200000; not {str(window)[:40]!r}"
            )
        chosen = get_policy(policy, **settings) if isinstance(policy, str) else policy
        self._dialect: Dialect = get_dialect(dialect) if isinstance(dialect, str) else dialect
        self._log = GuardedLog(chosen, window, summarizer=summarizer)
        self._originals: list[Message] = []
        self._digests: list[bytes] = []
        self._head: list[Message] = []
        self._tools: dict[str, str] = {}  # names by the ids of calls

    @property
    def policy(self) -> Policy:
        return self._log.policy

    @property
    def session(self) -> Session:
        """The conversation so far, uncompacted, with its model calls."""
        return self._log.session

    @property
    def recorded(self) -> Session:
        """The same with what the policy made of it: the recording of this agent."""
        return self._log.recorded

    @property
    def window(self) -> int:
        """The context window in tokens."""
        return self._log.window

    @property
    def asked(self) -> RequestDecision | None:
        """The decision of the request that waits for its answer."""
        return self._log.asked

    @property
    def compactions(self) -> tuple[CompactionRecord, ...]:
        """What the policy compacted for the request that waits for its answer."""
        return self._log.asked.all_compactions if self._log.asked else ()

    def before_call(
        self,
        messages: Sequence[Message],
        *,
        system: Any = None,
        tools: Sequence[Mapping[str, Any]] | None = None,
        todos: Iterable[Todo] = (),
    ) -> list[Any]:
        """The messages to send in place of `messages`, the agent's whole history.

        `system` is the system prompt if it is not one of the messages, `tools` the tools of the request in the API's
        form: both cost tokens. Raises GuardError if the history is not a list of message objects, or does not begin
        with the history of the last call.
        """
        _require_objects(messages)
        self._require_answer()
        head = self._dialect.split_system(messages)
        self._head = list(messages[:head])
        self._take(messages[head:])
        described = chat.tool_definitions(readable(plain(list(tools)))) if tools is not None else None
        if system is not None:
            parts = block_parts(readable(plain(system)))
        else:
            parts = tuple(part for message in self._head for part in self._dialect.event(plain(message)).parts)
        self._log.describe(parts if parts or system is not None else None, described)
        self._log.todos = tuple(Todo(*map(readable, todo)) for todo in todos)
        return self._written(self._log.ask())

    async def before_call_async(self, messages: Sequence[Message], **rest: Any) -> list[Any]:
        """The same for an agent in an event loop: the policy decides in a thread, and an asynchronous summariser is
        awaited in the agent's own loop."""
        with host_loop(asyncio.get_running_loop()):
            return await asyncio.to_thread(self.before_call, messages, **rest)

    def refused(self) -> list[Any] | None:
        """The messages to send after the provider refused the last ones as too large; None if the policy has no
        others."""
        self._require_request()
        asked = self._log.refused()
        return None if asked is None else self._written(asked)

    def after_call(self, prompt_tokens: int | None = None, **counts: int | None) -> None:
        """What the provider counted, in tokens: `prompt_tokens` with the cached ones, and by name `cached_tokens`,
        `cache_write_tokens`, `output_tokens`. None where it reported nothing."""
        self._require_request()
        self._log.answered(prompt_tokens, **counts)  # type: ignore[arg-type]  # an unknown name is a TypeError there

    def take(self, messages: Sequence[Message]) -> None:
        """Takes in what followed the last call, from the whole history, before another call is made: so that a
        recording has the answer at once, or at the end. Raises GuardError as `before_call`."""
        _require_objects(messages)
        self._require_answer()
        self._take(messages[self._dialect.split_system(messages) :])

    def withdraw(self) -> None:
        """The request failed and is not tried again: the policy is again in the state before it."""
        self._require_request()
        self._log.withdraw()

    def mark(self) -> GuardMark:
        """A place in the conversation, between two calls, to which `go_back` can return."""
        return GuardMark(len(self._digests), self._log.mark())

    def go_back(self, mark: GuardMark) -> None:
        """Forgets what came after a mark: the agent took it back, with all its calls."""
        self._log.go_back(mark.log)
        del self._digests[mark.messages :], self._originals[mark.messages :]

    def dump(self) -> bytes:
        """What to store between two calls, as JSON: the policy's state and counts, and of the conversation's words only
        those of its last summary."""
        digests = tuple(digest.hex() for digest in self._digests)
        return msgspec.json.encode(_StoredGuard(digests, msgspec.Raw(self._log.dump())))

    def load(self, data: bytes, messages: Sequence[Message]) -> None:
        """Continues from what `dump` gave, with the history as it was then or a longer one. Raises GuardError if it is
        a different history."""
        _require_objects(messages)
        if not isinstance(data, bytes | bytearray | memoryview | str):
            raise GuardError(f"a stored guard is the bytes that dump() gave, not of the type {type(data).__name__}")
        try:
            stored = msgspec.json.decode(data, type=_StoredGuard)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise GuardError(f"this is not a stored guard: {error}") from error
        rest = messages[self._dialect.split_system(messages) :][: len(stored.digests)]
        if [_digest(message).hex() for message in rest] != list(stored.digests):
            raise GuardError("the messages are not those that this guard was stored with")
        self._log.restore(bytes(stored.log))
        self._take(rest)

    def _require_answer(self) -> None:
        if self._log.asked is not None:
            raise GuardError(
                "the last request has no answer yet: call after_call() or withdraw() before the next before_call()"
            )

    def _require_request(self) -> None:
        if self._log.asked is None:
            raise GuardError("no request waits for an answer: call before_call() first")

    def _take(self, messages: Sequence[Message]) -> None:
        digests = [_digest(message) for message in messages]
        known = len(self._digests)
        if digests[:known] != self._digests:
            pairs = zip(digests, self._digests, strict=False)
            place = next((index for index, (new, old) in enumerate(pairs) if new != old), len(digests))
            raise GuardError(
                f"message {place + 1} is not the one of the last call: give the whole history at every call, "
                "or begin a new guard for another conversation"
            )
        self._log.extend(self._named(self._dialect.event(plain(message))) for message in messages[known:])
        self._originals = list(messages)
        self._digests = digests

    def _named(self, event: Event) -> Event:
        """The event with the names of the tools whose results it has: APIs name them in the call alone."""
        for part in event.parts:
            if isinstance(part, ToolCallPart) and part.id:
                self._tools[part.id] = part.name
        parts = (
            msgspec.structs.replace(part, name=self._tools.get(part.call_id, ""))
            if isinstance(part, ToolResultPart) and not part.name
            else part
            for part in event.parts
        )
        return msgspec.structs.replace(event, parts=tuple(parts))

    def _written(self, asked: RequestDecision) -> list[Any]:
        messages = [message for segment in asked.decision.view for message in self._messages(segment)]
        if self._dialect.begins_with_user and _begins_with_model(messages) and not _begins_with_model(self._originals):
            messages[:0] = self._dialect.messages(Event(Role.USER, (TextPart(LEFT_OUT),)))
        return [*self._head, *messages]

    def _messages(self, segment: Segment) -> Iterator[Message]:
        match segment:
            case Span(start, stop, form):
                for place in range(start, stop):
                    event = self._log.events[place]
                    changed = get_form(form).message(event) if form else event
                    yield from self._changed(place, changed)
            case Rewritten(place, message):
                yield from self._changed(place, message)
            case Synthetic(role=role):
                text = synthetic_text(segment)
                if text.strip():  # no API takes a message without words, which an empty summary may be
                    yield from self._dialect.messages(Event(role, block_parts(text)))
            case Inserted():
                raise GuardError("a live conversation has no recorded compactions")

    def _changed(self, place: int, event: Event) -> Iterator[Message]:
        """A message as it is where its event is, else written anew; nothing where no part is left of it."""
        original = self._originals[place]
        if event is self._log.events[place] or event == self._log.events[place]:
            yield original
        elif event.parts:
            yield from self._dialect.messages(event, plain(original))


class GuardMark(NamedTuple):
    """A conversation between two calls: how many messages behind the system prompt it had, and its log."""

    messages: int
    log: LogMark


class _StoredGuard(msgspec.Struct, frozen=True):
    digests: tuple[str, ...]
    log: msgspec.Raw


def _require_objects(messages: Any) -> None:
    """Messages come from programs without types, too, and from libraries with classes of their own for them."""
    if not isinstance(messages, Sequence) or isinstance(messages, str | bytes | bytearray):
        raise GuardError(f"messages are a list of objects such as dicts, not of the type {type(messages).__name__}")
    for number, message in enumerate(messages, 1):
        if not (isinstance(message, Mapping) or is_model(message)):
            raise GuardError(f"message {number} is an object such as a dict, not of the type {type(message).__name__}")


def _begins_with_model(messages: Sequence[Message]) -> bool:
    return bool(messages) and role_of(messages[0]) == "assistant"


def _digest(message: Message) -> bytes:
    """Which message it is, whatever client marks of caching it has."""
    stable = _stable(message)
    try:
        try:
            data = msgspec.json.encode(stable, order="deterministic")
        except UnicodeEncodeError:
            data = msgspec.json.encode(readable(stable), order="deterministic")
    except (TypeError, ValueError) as error:
        raise GuardError(f"a message is not a JSON object: {error}") from error
    return blake2b(data, digest_size=16).digest()


def _stable(value: Any) -> Any:
    if is_model(value):
        return _stable(plain(value))
    if isinstance(value, Mapping):
        return {key: _stable(item) for key, item in value.items() if key not in UNSTABLE}
    return [_stable(item) for item in value] if isinstance(value, list | tuple) else value
