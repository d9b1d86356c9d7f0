"""The context window that an agent takes for its models, where that is another than the model table's.

A threshold that follows from the window follows from this one. Source: own_rules.md, sections 1 and 2, measured by
running Claude Code 2.1.14 to 2.1.332 and Gemini CLI 0.61.0; Qwen Code 0.8.2, 0.15.10, 0.21.10 and 0.24.4, run with a
model that it knows or does not know, and `tokenLimits` of 0.8.2; for GitHub Copilot, the table's rows of that service.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from guard_core.agent_versions import numbers
from guard_core.claude_code_limits import DEFAULT_WINDOW as CLAUDE_CODE_WINDOW
from guard_core.claude_code_limits import default_window
from guard_core.sessions import Provenance, Sourced
from guard_core.windows.models import COPILOT, LONG_CONTEXT, LONG_CONTEXT_SUFFIX, context_window

CLAUDE_WINDOW = 200_000  # tokens: of Claude's models without the long context (platform.claude.com, "Context windows")
GEMINI_CLI_LIMIT = 1_048_576  # tokens: tokenLimit() of Gemini CLI for every model it names
COPILOT_CLI = "copilot-cli"
QWEN_CODE = "qwen-code"
QWEN_LIMIT, QWEN_LATER_LIMIT = 131_072, 200_000  # tokens: DEFAULT_TOKEN_LIMIT of 0.8.2 to 0.15.10, of 0.21.2 to 0.24.4
QWEN_ONE_LIMIT_FROM, QWEN_LIMIT_UP_TO, QWEN_LATER_FROM = (0, 10), (0, 16), (0, 21)
# Tokens by the name of a model: tokenLimits of Qwen Code 0.8.2 where they differ from its default, the first that fits.
_QWEN_LIMITS = (
    (r"gemini-1\.5-pro", 2_097_152),
    (r"gemini-2\.0-flash-image-generation", 32_768),
    (r"gemini-(1\.5-flash|2\.5-pro.*|2\.5-flash.*|2\.0-flash.*)", 1_048_576),
    (r"(o3|o4-mini|claude-3\.5-sonnet).*", 200_000),
    (r"(gpt-4\.1|claude-3\.7-sonnet|claude-sonnet-4|claude-opus-4).*", 1_048_576),
    (r"qwen3-coder-(plus|flash)(-.*)?|coder-model|qwen2\.5-1m.*|qwen-(plus|flash)-latest", 1_048_576),
    (r"qwen3-max(-.*)?|qwen3-coder-.*|qwen3-.*-2507-.*|qwen3-vl-plus", 262_144),
    (r"kimi-k2-0905|kimi-k2-turbo.*", 262_144),
    (r"seed-oss.*", 524_288),
    (r"glm-4\.5v(-.*)?", 65_536),
    (r"llama-4-scout.*", 10_485_760),
)
LOOKED_UP = (Provenance.MODEL_TABLE, Provenance.ASSUMED)  # sources of a window that an agent's own comes before


def taken_by_agent(format_: str, model: str, window: Sourced, largest: int, version: str = "") -> Sourced:
    """The window that the agent that writes this format takes for a model, in tokens.

    `window` is what the file, a person, the model table or an assumption says; only the latter two give way. `largest`
    is the largest prompt that was answered, in tokens, `version` that of the agent, "" where the file has none.
    """
    if window.source not in LOOKED_UP:
        return window
    if format_ == QWEN_CODE:
        return _qwen_code(model, window, largest, version)
    if format_ == COPILOT_CLI:
        return _copilot_cli(model, window, largest)
    return _TAKEN[format_](model, window, largest, version) if format_ in _TAKEN else window


def has_default(format_: str, version: str = "") -> bool:
    """Does the agent that writes this format take a window of its own for a model that it does not know."""
    return format_ in _TAKEN or (format_ == QWEN_CODE and _qwen_limit("", version) > 0)


def has_fixed_window(format_: str) -> bool:
    """Does the agent use its own window whatever its model accepts, so that no answered prompt contradicts
    it."""
    return format_ == "gemini-cli"


def _claude_code(model: str, window: Sourced, largest: int, version: str) -> Sourced:
    """200,000, unless the model's name or a larger prompt says a million."""
    if model.endswith(LONG_CONTEXT_SUFFIX):
        note = f"the name ends in {LONG_CONTEXT_SUFFIX}"
        return window if window.value == LONG_CONTEXT else Sourced(LONG_CONTEXT, Provenance.MODEL_TABLE, note)
    if largest > CLAUDE_CODE_WINDOW:
        note = f"prompts up to {largest:,} tokens were answered, above Claude Code's default of {CLAUDE_CODE_WINDOW:,}"
        return Sourced(LONG_CONTEXT, Provenance.PROMPTS, note)
    if (size := default_window(version, model)) > CLAUDE_CODE_WINDOW:
        return _default(window, size, f"what Claude Code {version} takes for this model")
    return _default(window, CLAUDE_CODE_WINDOW, "Claude Code's default; no recorded prompt was larger")


def _managed_agents(model: str, window: Sourced, largest: int, version: str) -> Sourced:
    """Its models are Claude's, whose windows are 200,000 or a million; its events do not say which of them it is."""
    if window.source is Provenance.MODEL_TABLE:
        return window
    if largest > CLAUDE_WINDOW:
        note = f"prompts up to {largest:,} tokens were answered, above the {CLAUDE_WINDOW:,} of Claude's smaller window"
        return Sourced(LONG_CONTEXT, Provenance.PROMPTS, note)
    return _default(window, CLAUDE_WINDOW, "the smaller window of Claude's models; no recorded prompt was larger")


def _copilot_cli(model: str, window: Sourced, largest: int) -> Sourced:
    """GitHub Copilot's window for the model, where it holds all that was answered."""
    served = context_window(f"{COPILOT}/{model}")
    return window if served is None or largest > served.value else served


def _qwen_code(model: str, window: Sourced, largest: int, version: str) -> Sourced:
    """Its limit for a model whose window is not set, as a file without one says; a larger prompt contradicts it."""
    size = _qwen_limit(model, version)
    note = f"what Qwen Code {version} takes where no window is set"
    return _default(window, size, note) if size > 0 and largest <= size else window


def _qwen_limit(model: str, version: str) -> int:
    """In tokens: by the model's name before 0.10, later one for all; 0 for a version of which it is not known."""
    known = numbers(version)
    if not known or QWEN_LIMIT_UP_TO <= known < QWEN_LATER_FROM:
        return 0
    if known >= QWEN_LATER_FROM:
        return QWEN_LATER_LIMIT
    if known >= QWEN_ONE_LIMIT_FROM:
        return QWEN_LIMIT
    name = _qwen_name(model)
    return next((limit for pattern, limit in _QWEN_LIMITS if re.fullmatch(pattern, name)), QWEN_LIMIT)


def _qwen_name(model: str) -> str:
    """A model's name without its provider, date and precision, as Qwen Code 0.8.2 looks it up."""
    name = re.split(r"[/|:]", model.lower().strip())[-1]
    name = re.sub(r"\s+", "-", name).replace("-preview", "")
    if not re.fullmatch(r"qwen-(plus|flash|vl-max)-latest|kimi-k2-[0-9]{4}", name):
        name = re.sub(r"-([0-9]{4,}|[0-9]+x[0-9]+b|v[0-9]+(\.[0-9]+)*|latest|exp)$", "", name)
    return re.sub(r"-([0-9]?bit|int[48]|bf16|fp16|q[45]|quantized)$", "", name)


def _default(window: Sourced, size: int, note: str) -> Sourced:
    """The agent's own window; the one given where that is the same."""
    is_table = window.source is Provenance.MODEL_TABLE
    if window.value == size:
        return window
    return Sourced(
        size, Provenance.ASSUMED, f"{note}, though the model table has {window.value:,}" if is_table else note
    )


_TAKEN: dict[str, Callable[[str, Sourced, int, str], Sourced]] = {
    "claude-code": _claude_code,
    "gemini-cli": lambda model, window, largest, version: _default(
        window, GEMINI_CLI_LIMIT, "Gemini CLI's limit for its models"
    ),
    "managed-agents": _managed_agents,
}
