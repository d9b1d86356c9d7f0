"""How sentences and titles name the agent of a session: by its program, with the mode in which it worked beside it."""

from __future__ import annotations

from guard_core.recordings.formats.opencode.session import KILO, LABEL, NAME

# By format: the program, where the `agent` of a session is a mode of it ("plan", "build"), and what else wrote such
# sessions, whose `agent` is its name.
_MODES = {NAME: (LABEL, (KILO,))}


def agent_name(agent: str, format_: str) -> str:
    """The agent of a session as people know it."""
    program, others = _MODES.get(format_, ("", ()))
    return f"{program} ({agent})" if program and agent and agent not in (program, *others) else agent
