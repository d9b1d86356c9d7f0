"""Simulations from sizes: what the user writes, what the model answers, and a rule for what tools return."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from guard_core import defaults
from guard_core.sessions import ToolDefinition
from guard_core.simulator.flow import Simulation, Turn, filler

_PREFIX = len("Turn 0 analysis: ")  # the model texts of ContextGuard's tests begin so


@dataclass(frozen=True)
class TurnRule:
    """What the turns number % every == offset bring: results by size, inline data, all in one chain or in parallel."""

    every: int = 1
    offset: int = 0
    results: tuple[int, ...] = ()
    inline: tuple[int, ...] = ()

    def applies(self, turn: int) -> bool:
        return turn % self.every == self.offset


_ONCE = 10_000  # more turns than any scenario has: a rule for a single turn


def every_turn(*results: int, every: int = 1, offset: int = 0, inline: tuple[int, ...] = ()) -> TurnRule:
    """Results that these turns bring."""
    return TurnRule(every, offset, results, inline)


def on_turn(turn: int, *results: int, inline: tuple[int, ...] = ()) -> TurnRule:
    """Results that one turn alone brings."""
    return TurnRule(_ONCE, turn, results, inline)


def _turn(
    number: int, user: int, filler_bytes: int, rules: Iterable[TurnRule], names: tuple[str, ...], *, sequential: bool
) -> Turn:
    """The first rule that applies says what tools return; inline data come from the first rule that has any."""
    fitting = [rule for rule in rules if rule.applies(number)]
    results = next((rule.results for rule in fitting if rule.results), ())
    inline = next((rule.inline for rule in fitting if rule.inline), ())
    return Turn(
        user_bytes=user,
        model_bytes=_PREFIX + len(str(number)) - 1 + filler_bytes,
        tools=tuple(
            (names[index] if index < len(names) else f"tool_{index}", size) for index, size in enumerate(results)
        ),
        sequential=sequential,
        inline=tuple(("image/png", size) for size in inline),
    )


def _user_sizes(user: int | tuple[int, ...], turns: int) -> list[int]:
    """One size for all turns; two that differ by a digit of the turn's number; or one size per turn."""
    if isinstance(user, int):
        return [user] * turns
    if len(user) == 2 and turns > 2:
        return [user[0] if number < 10 else user[1] for number in range(turns)]
    return [user[number % len(user)] for number in range(turns)]


def sized_simulation(  # noqa: PLR0913 - the columns of the table of scenarios
    window: int,
    turns: int,
    ratio: float,
    system: int,
    user: int | tuple[int, ...],
    rules: tuple[TurnRule, ...] = (),
    *,
    reply: int = defaults.SIMULATED_REPLY,
    sequential: bool = False,
    reported: bool = True,
    tools: tuple[int, int] = (0, 0),
    names: tuple[str, ...] = (),
) -> Simulation:
    """A simulation whose window is given in thousands of tokens, everything else in bytes."""
    sizes = _user_sizes(user, turns)
    return Simulation(
        window=window * 1_000,
        turns=tuple(
            _turn(number, sizes[number], reply, rules, names, sequential=sequential) for number in range(turns)
        ),
        ratio=ratio,
        reported_from=0 if reported else None,
        system_bytes=system,
        tools=server_tools(*tools),
    )


def server_tools(count: int, parameters: int) -> tuple[ToolDefinition, ...]:
    """Tool definitions as a large tool server offers them, each with so many described parameters."""
    return tuple(_server_tool(number, parameters) for number in range(count))


def _server_tool(number: int, parameters: int) -> ToolDefinition:
    properties = {
        f"param_{index}": {"type": "string", "description": f"Parameter {index} for tool {number}. {filler(60)}"}
        for index in range(parameters)
    }
    return ToolDefinition(
        name=f"mcp_tool_{number}",
        description=f"Tool {number} from MCP server. {filler(100)}",
        schema={"type": "object", "properties": properties, "required": ["param_0"]},
    )
