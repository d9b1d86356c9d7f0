"""Summarisers for a live guard: a function of the agent's own, or an endpoint that speaks Chat Completions."""

from __future__ import annotations

import asyncio
import http.client
import inspect
import os
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from guard_core.errors import SettingError, SummaryFailed
from guard_core.events import utf8_bytes
from guard_core.recordings.reading import normalise
from guard_core.requests import materialise
from guard_core.summaries.base import Summary, SummaryRequest
from guard_core.summaries.rendering import system_prompt, user_prompt


class Prompt(NamedTuple):
    """What a model is asked for a summary: two texts, and how many tokens its answer may have."""

    system: str
    user: str
    output_tokens: int


def prompt_of(request: SummaryRequest) -> Prompt:
    """The prompt of a request whose texts are known."""
    if request.session is None:
        raise SummaryFailed("the texts of this conversation are not here")
    messages = materialise(request.view, request.session)
    text = user_prompt(messages, request.previous.text or "", request.todos)
    return Prompt(system_prompt(request.words), text, request.output_tokens)


_HOST_LOOP: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("host_loop", default=None)


@contextmanager
def host_loop(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Where asynchronous summarisers are awaited while a policy decides in a thread."""
    token = _HOST_LOOP.set(loop)
    try:
        yield
    finally:
        _HOST_LOOP.reset(token)


@dataclass(frozen=True)
class AskedModel:
    """A function that gives the summary for a prompt, asynchronous or not. Whatever it raises is a failed summary."""

    function: Callable[[Prompt], str | Awaitable[str]]
    name: str = "model"

    def summarise(self, request: SummaryRequest) -> Summary:
        try:
            text = _awaited(self.function(prompt_of(request)))
        except SummaryFailed:
            raise
        except Exception as error:
            raise SummaryFailed(f"the summariser raised {type(error).__name__}") from error
        if not isinstance(text, str):
            raise SummaryFailed(f"the summariser gave {type(text).__name__}, no text")
        text = normalise.clean(text)
        return Summary(utf8_bytes(text), text)


def _awaited(answer: str | Awaitable[str]) -> str:
    if not inspect.isawaitable(answer):
        return answer

    async def awaited() -> str:
        return await answer

    loop = _HOST_LOOP.get()
    if loop is not None and loop.is_running():
        return asyncio.run_coroutine_threadsafe(awaited(), loop).result()
    return asyncio.run(awaited())


@dataclass
class ChatEndpoint:
    """A model behind an endpoint that speaks Chat Completions. Requests go only to hosts in `allowed_hosts`.

    `url` is the endpoint's base, such as `https://api.example.com/v1`; `key_variable` the environment variable with its
    key, which is read at each call and never kept. At most `most_calls` are made. `timeout` in seconds. With `dry_run`
    nothing is sent, and every summary is the mechanical one.
    """

    url: str
    model: str
    allowed_hosts: frozenset[str]
    key_variable: str = ""
    most_calls: int = 20
    timeout: float = 120.0
    dry_run: bool = False
    calls: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        address = urlsplit(self.url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise SettingError(f"the address of a model begins with http:// or https://, not {self.url[:60]!r}")
        if address.hostname not in self.allowed_hosts:
            raise SettingError(f"{address.hostname} is not among the hosts that are allowed")

    @property
    def name(self) -> str:
        return f"model:{self.model}"

    def summarise(self, request: SummaryRequest) -> Summary:
        if self.dry_run:
            return Summary(0)
        if self.calls >= self.most_calls:
            raise SummaryFailed(f"the limit of {self.most_calls} summaries is reached")
        prompt = prompt_of(request)
        self.calls += 1
        text = self._answer(prompt)
        return Summary(utf8_bytes(text), text)

    def _answer(self, prompt: Prompt) -> str:
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": prompt.user}]
        body = msgspec.json.encode({"model": self.model, "messages": messages, "max_tokens": prompt.output_tokens})
        address = urlsplit(self.url)
        key = os.environ.get(self.key_variable, "") if self.key_variable else ""
        headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        host, port = address.hostname or "", address.port
        connection = (
            http.client.HTTPSConnection(host, port, timeout=self.timeout, context=ssl.create_default_context())
            if address.scheme == "https"
            else http.client.HTTPConnection(host, port, timeout=self.timeout)
        )
        try:
            connection.request("POST", f"{address.path.rstrip('/')}/chat/completions", body, headers)
            response = connection.getresponse()
            answer = response.read(_LARGEST_ANSWER + 1)
        except (OSError, http.client.HTTPException) as error:
            raise SummaryFailed(f"the model did not answer: {type(error).__name__}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:  # a redirect, too: it could lead to a host that is not allowed
            raise SummaryFailed(f"the model answered with status {response.status}")
        return _text_of(answer)


_LARGEST_ANSWER = 4 << 20  # bytes; a summary has some thousand tokens


class _Said(msgspec.Struct):
    content: str | None = None


class _CompletionChoice(msgspec.Struct):
    message: _Said


class _Completion(msgspec.Struct):
    choices: list[_CompletionChoice]


def _text_of(answer: bytes) -> str:
    """The text of a chat completion. Raises SummaryFailed for anything else."""
    try:
        choices = msgspec.json.decode(answer, type=_Completion).choices
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SummaryFailed("the model's answer is not a chat completion") from error
    return (choices[0].message.content or "") if choices else ""
