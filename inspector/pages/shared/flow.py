"""The stages of one model call, each with its numbers: what inspector.figures.flow draws and a list says in full."""

from __future__ import annotations

from typing import Any

from guard_core.sessions import Provenance
from inspector.pages.shared.numbers import tokens


def stage(lane: str, title: str, short: str, text: str, *facts: dict[str, Any], off: bool = False) -> dict[str, Any]:
    """One stage: its lane, a title, the number in its box, what happens, and the numbers; `off`: it is not reached."""
    return {"lane": lane, "title": title, "short": short, "text": text, "facts": list(facts), "off": off}


def fact(
    name: str, value: int | str, how: str, source: str = Provenance.RECOMPUTED, unit: str = "tokens"
) -> dict[str, Any]:
    """One number of a stage, as a term of the decision card is shown."""
    shown = tokens(value) if isinstance(value, int) else value
    unit = unit.removesuffix("s") if value == 1 else unit
    row = {"name": name, "value": shown, "unit": unit, "expression": how, "sentence": ""}
    return {**row, "source": str(source), "as_of": None}
