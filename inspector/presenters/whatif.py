"""The settings of a replay: what a URL says, checked, as a form shows them and as the engine takes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import urlencode

from guard_core.errors import GuardError, SettingError
from guard_core.policies import POLICIES
from guard_core.policies.contextguard.settings import PROFILES
from guard_core.window import parse_buffer, parse_window

MAX_FACTOR = 100.0
SUMMARIES = {
    "": "as recorded",
    "share:low": "low: 10 %",
    "share:nominal": "nominal: 30 %",
    "share:high": "high: 100 %",
    "mechanical": "mechanical",
}
DEFAULT_POLICY = "contextguard"
POLICY_NAMES = {"contextguard": "ContextGuard", "contextguard-sliding": "ContextGuard (sliding window)"}
DEFAULT_PROFILE = "current"
FACTORS = ("factor", "cap", "floor")
LABELS = {  # how the form names each setting
    "policy": "Policy",
    "profile": "Profile",
    "window": "Window, tokens",
    "buffer": "Buffer",
    "factor": "Default factor",
    "cap": "Factor cap",
    "floor": "Factor floor",
    "summary": "Summaries",
}


@dataclass(frozen=True)
class Choice:
    """The settings of one replay, in the plain form of the URL; an empty text is the default."""

    policy: str = ""
    profile: str = ""
    window: str = ""
    buffer: str = ""
    factor: str = ""
    cap: str = ""
    floor: str = ""
    summary: str = ""

    @property
    def changed(self) -> bool:
        return self != Choice()

    def query(self, **more: Any) -> str:
        """The query string of these settings and more, "" or with its question mark; defaults are left out."""
        pairs = {field.name: getattr(self, field.name) for field in fields(self)} | more
        text = urlencode({name: value for name, value in pairs.items() if value not in ("", None)})
        return f"?{text}" if text else ""

    def engine_settings(self) -> dict[str, str]:
        """What the policy is made with; texts, which the engine parses."""
        names = {"profile": "profile", "buffer": "buffer", "factor": "default_factor", "cap": "cap", "floor": "floor"}
        return {engine: value for name, engine in names.items() if (value := getattr(self, name))}

    def engine_names(self) -> set[str]:
        """The names, as the engine has them, of the settings that were set by hand."""
        return {*self.engine_settings(), *(name for name in ("policy", "summary") if getattr(self, name))}

    def words(self) -> str:
        """The settings in words, for headings: "current profile, window 200,000, buffer 10%"."""
        changes = [
            f"{field.name} {getattr(self, field.name)}" for field in fields(self)[2:] if getattr(self, field.name)
        ]
        profile = f"{self.policy or DEFAULT_POLICY}, profile {self.profile or DEFAULT_PROFILE}"
        return ", ".join(["policy none" if self.policy == "none" else profile, *changes])


NAMES = tuple(field.name for field in fields(Choice))


def parse_choice(query: Mapping[str, str]) -> tuple[Choice, dict[str, str]]:
    """The settings of a query string, and an error in words for each that is not allowed (and is then left out).

    Settings that the chosen policy does not use are left out without an error.
    """
    found: dict[str, str] = {}
    errors: dict[str, str] = {}
    for name in NAMES:
        text = query.get(name, "").strip()
        if not text:
            continue
        try:
            found[name] = _CHECKS[name](text[:60])
        except GuardError as error:
            errors[name] = sentence(error)
    unused = ignored(Choice(policy=found.get("policy", ""), profile=found.get("profile", "")))
    used = Choice(**{name: value for name, value in found.items() if name not in unused})
    return _without_defaults(used), {name: error for name, error in errors.items() if name not in unused}


def ignored(choice: Choice) -> dict[str, str]:
    """The settings that have no effect under the policy and profile of a choice, each with what leaves it out."""
    if choice.policy == "none":
        return dict.fromkeys(("buffer", *FACTORS, "profile", "summary"), "not used by policy none")
    if choice.policy == "contextguard-sliding":
        return dict.fromkeys(FACTORS, "not used by the sliding policy")
    if choice.profile == "tail":
        return dict.fromkeys(FACTORS, "not used by profile tail")
    return {}


def _without_defaults(choice: Choice) -> Choice:
    policy = "" if choice.policy == DEFAULT_POLICY else choice.policy
    profile = "" if choice.profile == DEFAULT_PROFILE else choice.profile
    return replace(choice, policy=policy, profile=profile, buffer="" if choice.buffer == "auto" else choice.buffer)


def _one_of(name: str, known: Callable[[], Any]) -> Callable[[str], str]:
    def check(text: str) -> str:
        if text not in known():
            allowed = ", ".join(item for item in known() if item)
            raise SettingError(f"{LABELS[name]} {text!r} is not known; allowed are {allowed}.")
        return text

    return check


def sentence(error: GuardError) -> str:
    """An error of the engine as a page says it: with a capital letter and a full stop."""
    text = str(error)
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


def _window(text: str) -> str:
    return str(parse_window(text))


def _factor(name: str) -> Callable[[str], str]:
    def check(text: str) -> str:
        try:
            value = float(text.replace(",", "."))
        except ValueError:
            value = -1.0
        if not 0 <= value <= MAX_FACTOR:  # also refuses nan
            raise SettingError(f"{LABELS[name]} is a number from 0 to {MAX_FACTOR:g}, not {text!r}.")
        return f"{value:g}"

    return check


_CHECKS: dict[str, Callable[[str], str]] = {
    "policy": _one_of("policy", lambda: list(POLICIES)),
    "profile": _one_of("profile", lambda: list(PROFILES)),
    "window": _window,
    "buffer": parse_buffer,
    "factor": _factor("factor"),
    "cap": _factor("cap"),
    "floor": _factor("floor"),
    "summary": _one_of("summary", lambda: list(SUMMARIES)),
}


def form(
    choice: Choice, typed: Mapping[str, str], errors: Mapping[str, str], in_use: Mapping[str, str]
) -> dict[str, Any]:
    """The form: what was typed, the errors beside it, and as placeholders the values that are in use."""
    unused = ignored(choice)

    def field(name: str, help_text: str = "", mode: str = "decimal", **more: Any) -> dict[str, Any]:
        error = errors.get(name, "")
        return {
            "name": name,
            "label": LABELS[name],
            "mode": mode,
            "value": typed.get(name, "")[:60] if error or name in unused else getattr(choice, name),
            "placeholder": "" if name in unused else in_use.get(name, ""),
            "error": error,
            "ignored": name in unused,
            "note": error or unused.get(name, help_text),
            **more,
        }

    sizes = _choices(SUMMARIES, choice.summary, SUMMARIES)
    rows = [
        field("policy", choices=_choices(POLICIES, choice.policy or DEFAULT_POLICY)),
        field("profile", choices=_choices(PROFILES, choice.profile or DEFAULT_PROFILE)),
        field("window", mode="text"),
        field("buffer", "auto, tokens or 15%", mode="text"),
        field("factor"),
        field("cap"),
        field("floor"),
        field("summary", "size as a share of their budget", choices=sizes),
    ]
    return {"fields": rows, "changed": choice.changed or bool(errors), "error": errors.get("", "")}


def _choices(names: Any, selected: str, labels: Mapping[str, str] | None = None) -> list[dict[str, Any]]:
    return [{"value": name, "label": (labels or {}).get(name, name), "selected": name == selected} for name in names]
