"""The ASGI lifespan protocol, which channels leaves out: without it a server cannot say that it started."""

from __future__ import annotations

from inspector.project.body_limit import App, Message, Receive, Send


class Lifespan:
    """Answers lifespan events; everything else goes to the application."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "lifespan":
            await self.app(scope, receive, send)
            return
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
