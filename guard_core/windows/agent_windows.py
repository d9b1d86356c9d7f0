"""The context window that an agent takes for its models, where that is another than the model table's.

A threshold that follows from the window follows from this one. Source: own_rules.md, sections 1 and 2, measured by
running Claude Code 2.1.14 to 2.1.330 and Gemini CLI 0.61.0.
"""

from __future__ import annotations

from collections.abc import Callable

from guard_core.claude_code_limits import DEFAULT_WINDOW as CLAUDE_CODE_WINDOW
from guard_core.sessions import Provenance, Sourced
from guard_core.windows.models import LONG_CONTEXT, LONG_CONTEXT_SUFFIX

GEMINI_CLI_LIMIT = 1_048_576  # tokens: tokenLimit() of Gemini CLI for every model it names
LOOKED_UP = (Provenance.MODEL_TABLE, Provenance.ASSUMED)  # sources of a window that an agent's own comes before


def taken_by_agent(format_: str, model: str, window: Sourced, largest: int) -> Sourced:
    """The window that the agent that writes this format takes for a model, in tokens.

    `window` is what the file, a person, the model table or an assumption says; only the latter two give way. `largest`
    is the largest prompt that was answered, in tokens.
    """
    if format_ not in _TAKEN or window.source not in LOOKED_UP:
        return window
    return _TAKEN[format_](model, window, largest)


def has_default(format_: str) -> bool:
    """Does the agent that writes this format take a window of its own for a model that it does not know."""
    return format_ in _TAKEN


def has_fixed_window(format_: str) -> bool:
    """Does the agent reckon with its own window whatever its model accepts, so that no answered prompt contradicts
    it."""
    return format_ == "gemini-cli"


def _claude_code(model: str, window: Sourced, largest: int) -> Sourced:
    """200,000, unless the model's name or a larger prompt says a million."""
    if model.endswith(LONG_CONTEXT_SUFFIX):
        note = f"the name ends in {LONG_CONTEXT_SUFFIX}"
        return window if window.value == LONG_CONTEXT else Sourced(LONG_CONTEXT, Provenance.MODEL_TABLE, note)
    if largest > CLAUDE_CODE_WINDOW:
        note = f"prompts up to {largest:,} tokens were answered, above Claude Code's default of {CLAUDE_CODE_WINDOW:,}"
        return Sourced(LONG_CONTEXT, Provenance.PROMPTS, note)
    return _default(window, CLAUDE_CODE_WINDOW, "Claude Code's default; no recorded prompt was larger")


def _gemini_cli(model: str, window: Sourced, largest: int) -> Sourced:
    return _default(window, GEMINI_CLI_LIMIT, "Gemini CLI's limit for its models")


def _default(window: Sourced, size: int, note: str) -> Sourced:
    """The agent's own window; the one given where that is the same."""
    is_table = window.source is Provenance.MODEL_TABLE
    if window.value == size:
        return window
    return Sourced(
        size, Provenance.ASSUMED, f"{note}, though the model table has {window.value:,}" if is_table else note
    )


_TAKEN: dict[str, Callable[[str, Sourced, int], Sourced]] = {"claude-code": _claude_code, "gemini-cli": _gemini_cli}
