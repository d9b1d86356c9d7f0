"""A scenario of the gallery: simulations, and what the source of the scenario asserts about them."""

from __future__ import annotations

import msgspec

from guard_core.simulator.flow import Simulation


class Expected(msgspec.Struct, frozen=True, omit_defaults=True):
    """What the source's test asserts. `injections` counts as the source does: every step whose request shrank."""

    no_overflow: bool = False
    injections: int = 0
    no_loop: bool = False


class Scenario(msgspec.Struct, frozen=True):
    """A named case: one simulation, or two that are independent of each other."""

    name: str
    group: str
    simulations: tuple[Simulation, ...]
    expected: Expected = Expected()
    since: str = "current"  # the profile in which the source's test first exists
    note: str = ""
