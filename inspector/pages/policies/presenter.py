"""A policy as it is published, in words: settings by profile, and what it does with the bundled sessions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from guard_core.policies.base import Point, Policy
from guard_core.policies.settings import PolicyKind, Setting
from inspector.figures.sparkline import sparkline, trend, words
from inspector.pages.policies.examples import Example
from inspector.pages.shared.numbers import counted, grouped, percent, tokens
from inspector.replays.choice import plain


def row(kind: PolicyKind) -> dict[str, Any]:
    """A policy in the list."""
    return {
        "title": kind.title,
        "url": reverse("policy", args=[kind.name]),
        "help": kind.help,
        "looks": looks(kind.make()),
        "summaries": _summaries(kind),
        "profiles": counted(len(kind.profiles), "profile") if kind.profiles else "",
        "settings": counted(len(kind.settings), "setting"),
        "problems": counted(len(kind.known_problems), "known problem") if kind.known_problems else "",
    }


def looks(policy: Policy) -> str:
    """When a policy checks whether to compact, in words."""
    points = [str(point) for point in Point if point in policy.moments]
    return " and ".join(filter(None, [", ".join(points[:-1]), *points[-1:]])) or "never"


def _summaries(kind: PolicyKind) -> str:
    return "asks a model for summaries" if kind.summarises else "asks no model"


def facts(kind: PolicyKind, profile: str) -> list[dict[str, str]]:
    """What can be said of a policy in a line each."""
    command = f"--policy {kind.name}" + (f" --profile {profile}" if profile else "")
    return [
        {"name": "checks whether to compact", "value": looks(kind.make(profile or None))},
        {"name": "summaries", "value": _summaries(kind)},
        {"name": "on the command line", "value": command},
    ]


def profiles(kind: PolicyKind, shown: str, path: str) -> list[dict[str, Any]]:
    """The versions of a policy as links."""
    return [
        {
            "name": item.name,
            "help": item.help,
            "url": path + ("" if item.name == kind.default_profile else f"?{urlencode({'profile': item.name})}"),
            "current": item.name == shown,
            "is_default": item.name == kind.default_profile,
        }
        for item in kind.profiles
    ]


def settings(kind: PolicyKind) -> list[dict[str, Any]]:
    """Every setting with its default in every profile."""
    return [_setting(kind, item) for item in kind.settings]


def _setting(kind: PolicyKind, item: Setting) -> dict[str, Any]:
    default = item.default_in(kind.default_profile)
    others = [
        {"name": name, "value": grouped(plain(item.default_in(name)))}
        for name in kind.profile_names
        if name not in item.not_in and item.default_in(name) != default
    ]
    return {
        "name": item.name,
        "label": item.label,
        "help": item.help,
        "unit": item.unit,
        "allowed": item.allowed,
        "default": grouped(plain(default)) or "none",
        "others": others,
        "unused": ", ".join(item.not_in),
        "needs": item.needs,
        "source": item.source,
    }


def examples(listed: Sequence[Example], shown: Example | None, path: str, profile: str) -> list[dict[str, Any]]:
    """The bundled sessions under the policy, a row each."""
    return [_example(item, item is shown, path, profile) for item in listed]


def _example(item: Example, is_shown: bool, path: str, profile: str) -> dict[str, Any]:
    outcome, trace = item.compared.outcome, item.compared.trace
    query = urlencode({name: value for name, value in (("profile", profile), ("sample", item.sample.name)) if value})
    example = {"title": item.sample.title, "name": item.sample.name, "url": f"{path}?{query}#flow", "current": is_shown}
    if outcome is None or trace is None:
        return {**example, "problem": item.compared.problem}
    tokens_sent, fired, over = (trace.columns[name] for name in ("modelled_prompt_tokens", "fired", "overflow"))
    threshold = int(trace.columns["threshold"].max(initial=-1))
    picture = trend(tokens_sent, fired, over, threshold=threshold, window=trace.window)
    return {
        **example,
        "steps": tokens(outcome.steps),
        "window": tokens(outcome.window),
        "compactions": tokens(outcome.compactions),
        "overflows": tokens(outcome.overflows),
        "peak": percent(outcome.peak, outcome.peak_window),
        "held": "; ".join(f"{why} ({count:,})" for why, count in outcome.held.items()),
        "requests": f"{outcome.losses.requests_dropped:,} of {outcome.losses.requests:,}",
        "picture": {
            **sparkline(picture).context,
            "words": words(
                picture, outcome.steps, outcome.peak, [cycle.step for cycle in outcome.cycles], outcome.peak_window
            ),
        },
    }
