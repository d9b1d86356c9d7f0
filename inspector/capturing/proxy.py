"""The pass-through proxy: HTTP/1.1 from the agent on the loopback address, HTTP/1.1 (over TLS) to its provider.

Bodies go through as they are, piece by piece, in both directions at once; of the headers only `Host` and those that
concern one connection change. Nothing is sent twice: where a connection breaks, the agent's breaks, and the agent
decides. Each connection of the agent has one to the provider, which lives as long.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import time
from collections.abc import Callable
from contextlib import suppress
from select import POLLIN, poll
from typing import Any

import h11

from inspector.capturing.exchanges import Body, Exchange, api_of
from inspector.capturing.routes import MOST_HEAD, READ_BYTES, Route, error_words

CONNECT_SECONDS = 30.0  # for name, connection and TLS together
LAST_SECONDS = 1.0  # for the end of an answer whose agent left: some do at the last event, before the last byte
CLOSE_SECONDS = 5.0
TURNS = 3  # of the event loop: it sees what has arrived, reads it, and wakes who waits for it
LEAST_ERROR = 400  # HTTP status
UPGRADE_REQUIRED = 426
_HOP = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"upgrade"}  # RFC 9110, section 7.6.1


class Broken(Exception):
    """A side ended its connection, or broke the rules of HTTP, in the middle of an exchange."""


class Proxy:
    """A listening proxy for one provider. `done` hears of each call of a model when its answer has ended."""

    def __init__(self, route: Route, done: Callable[[Exchange], None]) -> None:
        self._route, self._upstream, self._done = route, route.upstream, done
        self._key = f"/{secrets.token_urlsafe(16)}"  # other programs of this machine do not know the address
        self._server: asyncio.Server | None = None
        self._connections: set[asyncio.Task[None]] = set()

    async def start(self) -> str:
        """Listen on a free port; the address to use in place of the provider's."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=READ_BYTES)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}{self._key}"

    async def stop(self) -> None:
        """End all connections."""
        if self._server is not None:
            self._server.close()
        for task in (tasks := list(self._connections)):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        agent = _ProxyEnd(h11.Connection(h11.SERVER, MOST_HEAD), reader, writer)
        try:
            await self._follow(agent)
        except (Broken, OSError, h11.RemoteProtocolError):
            pass  # the agent sees its connection end, as it would without a proxy
        except asyncio.CancelledError:
            pass  # by `stop`, which waits for this task; nothing above it hears of it
        finally:
            await agent.close()

    async def _follow(self, agent: _ProxyEnd) -> None:
        """One exchange after the other on a connection of the agent."""
        provider: _ProxyEnd | None = None
        try:
            while isinstance(request := await self._asked(agent), h11.Request):
                path = request.target.decode("latin-1")
                if (refusal := self._refusal(request, path)) is not None:
                    await agent.refuse(*refusal)
                    return
                if provider is None or provider.is_over:
                    if provider is not None:
                        await provider.close()
                    try:
                        provider = await self._connect()
                    except (OSError, TimeoutError) as error:
                        await agent.refuse(502, f"{self._upstream.host} cannot be reached: {_words(error)}")
                        return
                await self._exchange(agent, provider, request, path.removeprefix(self._key))
                if not (agent.is_done and provider.is_done):
                    return
                agent.http.start_next_cycle()
                provider.http.start_next_cycle()
        finally:
            if provider is not None:
                await provider.close()

    async def _asked(self, agent: _ProxyEnd) -> Any:
        """What the agent asks next. One who is answered learns why: a head may be too large, or no HTTP."""
        try:
            return await agent.event()
        except Broken as error:
            if isinstance(fault := error.__cause__, h11.RemoteProtocolError):
                await agent.refuse(fault.error_status_hint, f"The request was not forwarded: {fault}.")
            raise

    def _refusal(self, request: h11.Request, path: str) -> tuple[int, str] | None:
        if not path.startswith(f"{self._key}/"):
            return 404, "This address belongs to another program."
        if any(name == b"upgrade" and b"websocket" in value.lower() for name, value in request.headers):
            # Codex then asks by HTTP at once; upon 501 it tries five more times before (0.171.0).
            return UPGRADE_REQUIRED, "Only HTTP requests are forwarded, not WebSockets."
        return None

    async def _connect(self) -> _ProxyEnd:
        """A new connection to the provider. Raises OSError, and TimeoutError after `CONNECT_SECONDS`."""
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await self._route.opened()
        return _ProxyEnd(h11.Connection(h11.CLIENT, MOST_HEAD), reader, writer)

    async def _exchange(self, agent: _ProxyEnd, provider: _ProxyEnd, request: h11.Request, path: str) -> None:
        """Pass one request on, and its answer back; both directions at once, for an answer may come early."""
        method, headers = request.method.decode("latin-1"), dict(request.headers)
        exchange = Exchange(path.split("?")[0], api_of(method, path.split("?")[0]))
        exchange.user_agent = headers.get(b"user-agent", b"").decode("latin-1")
        exchange.request.encoding = headers.get(b"content-encoding", b"").decode("latin-1").lower()
        is_call = bool(exchange.api)
        target = f"{self._upstream.prefix}{path}"
        sent = [
            (name, self._upstream.host_header if name.lower() == b"host" else value) for name, value in _kept(request)
        ]
        if self._route.proxy is not None and self._route.is_asked_whole:
            target = f"http://{self._upstream.host_header.decode()}{target}"
            sent += self._route.proxy.headers
        asking: asyncio.Task[None] | None = None
        try:
            await provider.send(h11.Request(method=request.method, target=target, headers=sent))
            asking = asyncio.create_task(_ask(agent, provider, exchange.request if is_call else None))
            await _answer(provider, agent, exchange if is_call else None)
        finally:
            # An answer that ended before its request, or broke: what is left of the request has no reader.
            if asking is not None:
                asking.cancel()
            if is_call:  # at once: an agent that has its answer may end, and the recording with it
                exchange.seconds = time.monotonic() - exchange.clock
                self._done(exchange)
            if asking is not None:
                with suppress(asyncio.CancelledError, Broken, OSError):
                    await asking


class _ProxyEnd:
    """One end of the proxy: a connection with the state of its HTTP."""

    def __init__(self, http: h11.Connection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.http, self._reader, self._writer = http, reader, writer
        self._is_refused = False

    @property
    def is_done(self) -> bool:
        """Is an exchange over, so that another may follow?"""
        return self.http.our_state is h11.DONE and self.http.their_state is h11.DONE

    @property
    def is_over(self) -> bool:
        """Has the other end closed the connection while nothing was asked?"""
        return self._reader.at_eof() or self._writer.is_closing()

    @property
    def _has_arrived(self) -> bool:
        """Has the other end sent anything that is not read yet?"""
        if self._writer.is_closing():
            return False
        waiting = poll()
        waiting.register(self._writer.get_extra_info("socket"), POLLIN)
        return bool(waiting.poll(0))

    @property
    def _has_answered_early(self) -> bool:
        """Has the other end a whole answer while it still sends its request, or one that is no HTTP?"""
        is_answered = self.http.our_state in (h11.DONE, h11.MUST_CLOSE)
        return is_answered and self.http.their_state in (h11.SEND_BODY, h11.ERROR)

    async def _read_rest(self) -> None:
        """Read what has no reader any more: a connection that is closed before is reset, and with it goes the answer
        (RFC 9112, section 9.6)."""
        self._writer.write_eof()
        while await self._reader.read(READ_BYTES):
            pass

    async def event(self) -> Any:
        """What comes next. Raises Broken where the connection ends in the middle of something."""
        while True:
            try:
                event = self.http.next_event()
            except h11.RemoteProtocolError as error:
                raise Broken(str(error)) from error
            if event is h11.PAUSED:
                return event
            if event is not h11.NEED_DATA:
                return event
            self.http.receive_data(await self._reader.read(READ_BYTES))

    async def left(self) -> None:
        """Wait until the other end closes its connection; for ever where it sends anything more before."""
        if data := await self._reader.read(READ_BYTES):
            self.http.receive_data(data)
            await asyncio.Event().wait()

    def abort(self) -> None:
        """End the connection at once."""
        self._writer.transport.abort()

    def refuses(self, status: int) -> None:
        """An answer with this status begins: where it is an error, no more of the request is sent."""
        self._is_refused = status >= LEAST_ERROR and self.http.our_state is h11.SEND_BODY

    async def send(self, event: Any) -> None:
        """Send, and wait while the other end does not take more. What has arrived is read before: where the other end
        has answered and closed the connection, asyncio discards with the write that fails what was not read."""
        for _ in range(TURNS):
            if not self._has_arrived:
                break
            await asyncio.sleep(0)
        if self._is_refused:
            raise Broken("an error was answered before the request was whole")
        try:
            data = self.http.send(event)
        except h11.LocalProtocolError as error:
            raise Broken(str(error)) from error
        if data:
            self._writer.write(data)
            await self._writer.drain()

    async def refuse(self, status: int, words: str) -> None:
        """Answer for the provider, in the form in which providers say errors; the connection ends."""
        body = json.dumps({"type": "error", "error": {"type": "capture_proxy", "message": words}}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body))), ("Connection", "close")]
        headers += [("Upgrade", "HTTP/1.1")] if status == UPGRADE_REQUIRED else []  # RFC 9110, section 15.5.22
        with suppress(Broken, OSError):
            await self.send(h11.Response(status_code=status, headers=headers, reason=b""))
            await self.send(h11.Data(data=body))
            await self.send(h11.EndOfMessage())

    async def close(self) -> None:
        """End the connection; what the other end does not take within a moment is lost."""
        try:
            async with asyncio.timeout(CLOSE_SECONDS):
                if self._has_answered_early:
                    await self._read_rest()
                self._writer.close()
                await self._writer.wait_closed()
        except (OSError, TimeoutError, asyncio.CancelledError):
            self.abort()


async def _ask(agent: _ProxyEnd, provider: _ProxyEnd, body: Body | None) -> None:
    """Pass a request on. Where its agent leaves before it has the answer, the connection to the provider ends, so that
    the provider need not finish the answer."""
    await _pass_on(agent, provider, body)
    await agent.left()
    await asyncio.sleep(LAST_SECONDS)
    provider.abort()


async def _pass_on(source: _ProxyEnd, target: _ProxyEnd, body: Body | None) -> None:
    """The rest of a message after its head."""
    while True:
        event = await source.event()
        if isinstance(event, h11.Data):
            if body is not None:
                body.add(event.data)
            await target.send(h11.Data(data=event.data))
        elif isinstance(event, h11.EndOfMessage):
            if body is not None:
                body.is_complete = True
            await target.send(h11.EndOfMessage(headers=event.headers))
            return
        else:
            raise Broken("the connection ended mid-message")


async def _answer(provider: _ProxyEnd, agent: _ProxyEnd, exchange: Exchange | None) -> None:
    """The answer, with what precedes it (100 Continue)."""
    while isinstance(head := await provider.event(), h11.InformationalResponse):
        await agent.send(
            h11.InformationalResponse(status_code=head.status_code, headers=_kept(head), reason=head.reason)
        )
    if not isinstance(head, h11.Response):
        raise Broken("the provider ended the connection without an answer")
    if exchange is not None:
        headers = dict(head.headers)
        exchange.status = head.status_code
        exchange.answer.encoding = headers.get(b"content-encoding", b"").decode("latin-1").lower()
        exchange.answer.kind = headers.get(b"content-type", b"").decode("latin-1")
    provider.refuses(head.status_code)
    await agent.send(h11.Response(status_code=head.status_code, headers=_kept(head), reason=head.reason))
    await _pass_on(provider, agent, exchange.answer if exchange is not None else None)


def _kept(head: Any) -> list[tuple[bytes, bytes]]:
    """The headers of a message as they were written, without those of one connection; that it ends is said."""
    named = {name.strip().lower() for key, value in head.headers if key == b"connection" for name in value.split(b",")}
    dropped = _HOP | (named - {b"close", b"keep-alive"})
    headers = [(name, value) for name, value in head.headers.raw_items() if name.lower() not in dropped]
    return [*headers, (b"Connection", b"close")] if b"close" in named else headers


def _words(error: BaseException) -> str:
    """Why there is no connection; of a timeout the error itself says nothing."""
    if isinstance(error, TimeoutError):
        return f"no connection within {CONNECT_SECONDS:.0f} seconds"
    return error_words(error)
