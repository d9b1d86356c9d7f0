"""The parameters of the library as our settings, and the setting that all of its policies share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from guard_core.errors import SettingError
from guard_core.policies.settings import COUNT, SHARE, Setting

SOURCE = "pydantic-ai-harness 0.62.0, compaction"
# Without effect on scripted runs: they load no capabilities, a scripted model has no family that a note could name, and
# what the summariser is sent of a long result begins with the mark of its message.
_WITHOUT_EFFECT = {"preserve_loaded_capabilities", "bridge_prefix", "tool_return_max_chars"}
CONTEXT_WINDOW = Setting(
    "context_window",
    "Window",
    COUNT,
    0,
    "window that the share refers to; 0: the session's",
    SOURCE,
    needs="max_fraction",
    unit="tokens",
)


def harness_settings(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of the library as our settings. Raises SettingError for receipts and a tail of no tokens, which
    are not modelled."""
    given = {name: value for name, value in parameters.items() if name not in _WITHOUT_EFFECT}
    if given.pop("receipts", False):
        raise SettingError("receipts are not modelled: a message behind the summary says what was dropped")
    if given.get("keep_tokens", 1) == 0:
        raise SettingError("keep_tokens of 0 is not modelled: the library then keeps other messages than without it")
    if given.get("min_clear_tokens", 1) == 0:  # without it, the library clears even where that saves nothing
        given["never_grows"] = True
    fallback = given.pop("fallback_context_window", None)  # of a model without a known window, as scripted ones are
    if not given.get("context_window") and "window" not in given:
        given["context_window"] = fallback
    return given


def limit_of(settings: Any, window: int) -> int:
    """The tokens over which a policy acts, 0: it does not compare tokens. A share goes before a number, which has a
    default here; the library takes one of the two."""
    if not settings.max_fraction:
        return int(settings.max_tokens)
    return max(1, int((settings.context_window or window) * settings.max_fraction))


def limit_settings(acts: str) -> tuple[Setting, ...]:
    """The limit in tokens, or as a share of a window; `acts` is what the policy does beyond it."""
    return (
        Setting(
            "max_tokens",
            "Token limit",
            COUNT,
            100_000,
            f"{acts} above this where no share of the window is set; 0: never; the library has no default",
            SOURCE,
            unit="tokens",
            main=True,
            sweep=(30_000, 100_000),
        ),
        Setting(
            "max_fraction",
            "Share of the window",
            SHARE,
            0.0,
            "share of the window, instead of a token limit; 0: none",
            SOURCE,
        ),
        CONTEXT_WINDOW,
    )
