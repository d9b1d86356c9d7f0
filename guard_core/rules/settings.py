"""Settings of the rules of agents: their sources, and how those that a person types are read."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from guard_core.defaults import MAX_WINDOW
from guard_core.errors import SettingError
from guard_core.sessions import AgentSetting, Provenance, Sourced
from guard_core.sizes import parse_count

Typed = Mapping[str, str]  # settings as typed, by name
WINDOW = "window"  # the setting that every rule has: the context window of the model, in tokens
OF_MODEL = ":"  # between that name and a model, where the window is the one of that model alone
AUTO = "auto"  # of agents whose automatic compaction can be switched off
SWITCH_WORDS = "automatic compaction: on or off"
_ON, _OFF = ("on", "true", "yes", "1"), ("off", "false", "no", "0")


class RuleNumber(msgspec.Struct, frozen=True, gc=False):
    """A number that the rule is made of. None: not known, the note says why."""

    name: str
    value: float | None
    unit: str
    source: Provenance
    note: str = ""


def switched(typed: Typed, name: str = AUTO) -> bool:
    """Is a switch on, as it is where it was not typed. Raises SettingError."""
    value = typed.get(name, "on").strip().lower()
    if value not in _ON + _OFF:
        raise SettingError(f"{name} is on or off (true or false), not {typed[name][:20]!r}")
    return value in _ON


def whole(typed: Typed, name: str, least: int = 1) -> int | None:
    """A number of tokens as typed (k and M allowed), None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    return parse_count(typed[name], name, least, MAX_WINDOW, "tokens")


def windows_by_model(typed: Typed) -> dict[str, Sourced]:
    """The context windows that were typed for single models, by their names. Raises SettingError."""
    names = [name for name in typed if name.startswith(f"{WINDOW}{OF_MODEL}")]
    sizes = ((name.partition(OF_MODEL)[2], whole(typed, name)) for name in names)
    return {model: Sourced(size, Provenance.USER, "typed in") for model, size in sizes if size is not None}


def percentage(typed: Typed, name: str, *, is_fraction: bool = True) -> float | None:
    """A percentage of 1 to 100 as typed, None where it was not. `is_fraction`: the agent itself has fractions, so that
    0.2 is 20 %. Raises SettingError."""
    if name not in typed:
        return None
    text = typed[name].strip()
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = 0.0
    if is_fraction and 0 < value < 1 and not text.endswith("%"):
        value = round(value * 100, 6)
    if not 1 <= value <= 100:
        also = ", or a fraction from 0.01 to 1" if is_fraction else ""
        raise SettingError(f"{name} is a percentage from 1 to 100{also}, not {text[:20]!r}")
    return value


def fraction(typed: Typed, name: str, least: float = 0.01, most: float = 1.0) -> float | None:
    """A fraction as typed (0.85, 85%), None where it was not. Raises SettingError."""
    if name not in typed:
        return None
    text = typed[name].strip()
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not least <= value <= most:
        raise SettingError(f"{name} is a fraction from {least:g} to {most:g}, not {text[:20]!r}")
    return value


def chosen(
    name: str, value: float | None, default: float, unit: str, note: str, known: AgentSetting | None = None
) -> RuleNumber:
    """A setting that was typed, else that of the file, else its default, an assumption: `note` says of what."""
    if value is not None:
        return RuleNumber(name, value, unit, Provenance.USER, "typed in")
    if known is not None:
        return RuleNumber(name, known.value, unit, Provenance.RECORDER, known.note)
    return RuleNumber(name, default, unit, Provenance.ASSUMED, note)


def stated(typed: Typed, name: str, unit: str, known: AgentSetting | None, least: int = 0) -> RuleNumber | None:
    """A setting that was typed, else that of the file; None where neither has it. Raises SettingError."""
    if (value := whole(typed, name, least)) is not None:
        return RuleNumber(name, value, unit, Provenance.USER, "typed in")
    return None if known is None else RuleNumber(name, known.value, unit, Provenance.RECORDER, known.note)


def window_setting(window: Sourced | None) -> RuleNumber:
    """The context window as a setting of a rule."""
    if window is None:
        note = "neither the file nor the model table has it"
        return RuleNumber("window", None, "tokens", Provenance.ASSUMED, note)
    return RuleNumber("window", window.value, "tokens", window.source, window.note)
