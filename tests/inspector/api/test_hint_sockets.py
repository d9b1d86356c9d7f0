"""What a page hears over its socket while the agent of its session works, and while it pauses."""

import asyncio

from inspector.api.sockets import SafeConsumer, SessionConsumer


class Viewed(SessionConsumer):
    """The socket of a row in memory, whose agent pauses all the time: only a hint makes it look in this test."""

    pause, quiet, look_rarely = 0.0, 0.0, 600.0

    def __init__(self) -> None:
        self.nudge, self.state, self.sent = asyncio.Event(), (1,), []

    async def _look(self):
        return self.state

    async def send(self, text_data=None, bytes_data=None, close=False):
        self.sent.append(text_data)

    async def close(self, code=None, reason=None):
        self.sent.append("closed")


async def heard(viewed: Viewed, count: int) -> None:
    while len(viewed.sent) < count:
        await asyncio.sleep(0)


def test_the_step_after_a_long_pause_is_pushed_at_once():
    async def watch() -> list[str]:
        viewed = Viewed()
        watching = asyncio.create_task(viewed._watch())
        await asyncio.wait_for(heard(viewed, 1), 10)
        viewed.state = (2,)
        viewed.nudge.set()
        await asyncio.wait_for(heard(viewed, 2), 10)
        watching.cancel()
        return viewed.sent

    assert asyncio.run(watch()) == [f'{{"changed":true,"steps":{steps}}}' for steps in (1, 2)]


def test_a_client_that_leaves_while_something_is_sent_is_no_error():
    async def leave() -> list[str]:
        kinds = iter(["connect", "receive", "disconnect"])
        attempts = []

        async def receive() -> dict[str, object]:
            return {"type": f"websocket.{next(kinds)}", "text": "{}", "code": 1001}

        async def send(message: dict[str, object]) -> None:
            attempts.append(message["type"])
            raise ConnectionResetError

        await SafeConsumer.as_asgi()({"type": "websocket"}, receive, send)
        return attempts

    assert asyncio.run(leave()) == ["websocket.accept", "websocket.send"]
