"""A scenario of one's own: its fields, its limits, and the simulation they make."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from guard_core import defaults
from guard_core.errors import SettingError
from guard_core.simulator.flow import Simulation, Turn
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.sized_turns import server_tools
from guard_core.sizes import parse_count
from inspector.pages.gallery.table import PolicyChoice, guards_by_group
from inspector.pages.shared.numbers import turn_index, turn_number
from inspector.replays.choice import sentence

MAX_TURNS = 1_000
MAX_STEPS = 4_000  # model calls: one a turn, and one for parallel results or one for each result of a chain
MAX_RESULTS = 200  # of one turn
MAX_MESSAGE = 2_000_000  # bytes of one message or result
MAX_TEXT = 20_000_000  # bytes of a whole session
MAX_INLINE = 100_000_000  # raw bytes of one inline part; only its size is kept
MAX_RATIO = 20.0
MAX_TOOLS, MAX_PARAMETERS = 200, 100
MAX_TITLE = 80
MAX_PLAN = 20_000  # characters; a preview carries it in its address

LIMITS = (
    f"At most {MAX_TURNS:,} turns, {MAX_RESULTS} results a turn, {MAX_STEPS:,} model calls and "
    f"{MAX_TEXT // 1_000_000} MB of text in all; one message or result at most {MAX_MESSAGE // 1_000_000} MB."
)
_NAMED = re.compile(r"(?:([\w./+-]{1,60}):)?([\d_.]+\s*[kKmM]?)")
_COUNT = re.compile(r"(\d{1,6})x")


def size(text: str, what: str, most: int, least: int = 0) -> int:
    """A number as typed: 1500, 1_500, 1.5k, 2M. Raises ValidationError, naming what is allowed."""
    try:
        return parse_count(text, what, least, most)
    except SettingError as error:
        raise ValidationError(sentence(error)) from error


def sized(text: str, what: str, default: str, most: int) -> tuple[tuple[str, int], ...]:
    """A list of sizes, each with a name if wanted: "10k, kubectl_logs:20k"."""
    pairs: list[tuple[str, int]] = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = _NAMED.fullmatch(item)
        if not match:
            raise ValidationError(
                f"{what}: sizes with commas between them, such as 10k, 5k or logs:20k, not {item[:40]!r}."
            )
        pairs.append((match[1] or default.format(len(pairs)), size(match[2], what, most)))
    if len(pairs) > MAX_RESULTS:
        raise ValidationError(f"{what}: at most {MAX_RESULTS} in one turn, not {len(pairs):,}.")
    return tuple(pairs)


class SizeField(forms.CharField):
    """A size or count with its bounds."""

    def __init__(self, label: str, most: int, least: int = 0, help_text: str = "", **options: Any) -> None:
        self.most, self.least = most, least
        attrs = {"class": "input", "inputmode": "text", "autocomplete": "off"}
        wrong = f"{label} is a whole number from {least:,} to {most:,}, such as 500, 2k or 1.5M."
        messages = {"required": wrong, "max_length": wrong}
        widget = forms.TextInput(attrs=attrs)
        super().__init__(
            label=label, help_text=help_text, max_length=20, widget=widget, error_messages=messages, **options
        )

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return size(text, str(self.label), self.most, self.least) if text else self.least


def _text(label: str, most: int, help_text: str = "", **attrs: Any) -> forms.CharField:
    widget = forms.TextInput(attrs={"class": "input", "autocomplete": "off", **attrs})
    return forms.CharField(label=label, max_length=most, required=False, help_text=help_text, widget=widget)


USAGE = (("yes", "yes, at every step"), ("from", "from a turn on"), ("no", "never"))


class ScenarioForm(forms.Form):
    """Everything that makes a simulation. Without a plan all turns are alike, or every n-th has tools."""

    title = _text("Name", MAX_TITLE, "shown in the list of sessions")
    window = SizeField("Context window", defaults.MAX_WINDOW, defaults.MIN_WINDOW, "tokens")
    ratio = forms.FloatField(
        label="Ratio",
        min_value=0.1,
        max_value=MAX_RATIO,
        help_text="what the provider counts, divided by the estimate",
        widget=forms.TextInput(attrs={"class": "input", "inputmode": "decimal", "autocomplete": "off"}),
        error_messages=dict.fromkeys(
            ("required", "invalid", "min_value", "max_value"),
            f"Ratio is a number from 0.1 to {MAX_RATIO:g}, such as 2 or 2.5.",
        ),
    )
    usage = forms.ChoiceField(
        label="Usage reported", choices=USAGE, required=False, widget=forms.Select(attrs={"class": "select"})
    )
    usage_turn = SizeField("From turn", MAX_TURNS, 1, "the first turn is 1", required=False)
    system = SizeField("System prompt", MAX_MESSAGE, 0, "bytes", required=False)
    tools = SizeField("Tool definitions", MAX_TOOLS, 0, "how many", required=False)
    parameters = SizeField("Parameters each", MAX_PARAMETERS, 0, "about 130 bytes each", required=False)
    turns = SizeField("Turns", MAX_TURNS, 1)
    user = SizeField("User's message", MAX_MESSAGE, 0, "bytes", required=False)
    reply = SizeField("Model's reply", MAX_MESSAGE, 0, "bytes", required=False)
    results = _text("Tool results", 4_000, "bytes of each, with commas: 10k, 5k, logs:20k")
    every = SizeField("Tools every", MAX_TURNS, 1, "turns; 1: in every turn", required=False)
    sequential = forms.BooleanField(label="one call after the other", required=False)
    inline = _text("Inline data", 1_000, "raw bytes of images with the user's message: 100k")
    plan = forms.CharField(
        label="Turn by turn",
        max_length=MAX_PLAN,
        required=False,
        widget=forms.Textarea(attrs={"class": "textarea", "rows": 6, "spellcheck": "false"}),
    )
    guard = forms.ChoiceField(
        label="Policy of the preview",
        required=False,
        choices=lambda: [(group, [(name, name) for name in names]) for group, names in guards_by_group()],
        widget=forms.Select(attrs={"class": "select"}),
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name, field in self.fields.items():
            field.widget.attrs["aria-describedby"] = f"help-{name}"

    def clean_results(self) -> tuple[tuple[str, int], ...]:
        return sized(self.cleaned_data["results"], "Tool results", "tool_{}", MAX_MESSAGE)

    def clean_inline(self) -> tuple[tuple[str, int], ...]:
        return sized(self.cleaned_data["inline"], "Inline data", "image/png", MAX_INLINE)

    def clean_plan(self) -> tuple[Turn, ...]:
        return parse_plan(self.cleaned_data["plan"])

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if not self.errors:
            data["simulation"] = self._simulation(data)
        return data

    def _simulation(self, data: Mapping[str, Any]) -> Simulation:
        turns = data["plan"]
        if not turns:
            plain = Turn(user_bytes=data["user"], model_bytes=data["reply"])
            full = Turn(data["user"], data["reply"], data["results"], data["sequential"], data["inline"])
            turns = tuple(full if number % (data["every"] or 1) == 0 else plain for number in range(data["turns"]))
        _check(turns, data["system"])
        reported = {"yes": 0, "no": None, "from": turn_index(data["usage_turn"])}[data["usage"] or "yes"]
        return Simulation(
            window=data["window"],
            turns=turns,
            ratio=data["ratio"],
            reported_from=reported,
            system_bytes=data["system"],
            tools=server_tools(data["tools"], data["parameters"]),
        )

    @property
    def simulation(self) -> Simulation:
        simulation: Simulation = self.cleaned_data["simulation"]
        return simulation

    @property
    def chosen_guard(self) -> PolicyChoice:
        return PolicyChoice(*(self.cleaned_data.get("guard") or "contextguard/current").partition("/")[::2])

    @property
    def name(self) -> str:
        """The title, or one made of the scenario's main figures."""
        simulation = self.simulation
        return " ".join(self.cleaned_data["title"].split()) or (
            f"Scenario: window {simulation.window:,}, {len(simulation.turns):,} turns, ratio {simulation.ratio:g}"
        )


def _check(turns: tuple[Turn, ...], system: int) -> None:
    """Turns times tools is bounded, so that every scenario can be played at once."""
    steps = sum(map(steps_of, turns))
    if steps > MAX_STEPS:
        raise ValidationError(
            f"{len(turns):,} turns with these tools make {steps:,} model calls; at most {MAX_STEPS:,} are allowed. "
            "Take fewer turns, fewer results a turn, or parallel calls."
        )
    text = system + sum(turn.user_bytes + turn.model_bytes + sum(bytes_ for _, bytes_ in turn.tools) for turn in turns)
    if text > MAX_TEXT:
        raise ValidationError(
            f"All messages and results together are {text / 1_000_000:.1f} MB; at most {MAX_TEXT // 1_000_000} MB are "
            "allowed. Take fewer turns or smaller results."
        )


def steps_of(turn: Turn) -> int:
    """Model calls of one turn."""
    return 1 + (len(turn.tools) if turn.sequential else bool(turn.tools))


# ---- the plan: one line for turns that are alike


def parse_plan(text: str) -> tuple[Turn, ...]:
    """Lines such as "20x user=50 reply=120 results=10k,5k sequential inline=100k". Raises ValidationError."""
    turns: list[Turn] = []
    for number, line in enumerate(text.splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            count, turn = _line(words)
        except ValidationError as error:
            raise ValidationError(f"Line {number}: {error.messages[0]}") from error
        if len(turns) + count > MAX_TURNS:
            raise ValidationError(f"Line {number}: more than {MAX_TURNS:,} turns.")
        turns += [turn] * count
    return tuple(turns)


def _line(words: list[str]) -> tuple[int, Turn]:
    counted = _COUNT.fullmatch(words[0])
    count = size(counted[1], "The number of turns", MAX_TURNS, 1) if counted else 1
    values: dict[str, Any] = {
        "user": 0,
        "reply": defaults.SIMULATED_REPLY,
        "results": (),
        "inline": (),
        "sequential": False,
    }
    for word in words[1:] if counted else words:
        name, sign, value = word.partition("=")
        values[name] = _value(name, value, bool(sign))
    return count, Turn(values["user"], values["reply"], values["results"], values["sequential"], values["inline"])


def _value(name: str, value: str, given: bool) -> Any:
    if name == "sequential" and not given:
        return True
    if name in ("user", "reply") and given:
        return size(value, name, MAX_MESSAGE)
    if name == "results" and given:
        return sized(value, name, "tool_{}", MAX_MESSAGE)
    if name == "inline" and given:
        return sized(value, name, "image/png", MAX_INLINE)
    raise ValidationError(
        f"{name[:40]!r} is unknown; allowed are 20x, user=, reply=, results=, inline= and sequential."
    )


def written_plan(turns: tuple[Turn, ...]) -> str:
    """The plan that reads as these turns; neighbours that are alike share a line."""
    lines: list[str] = []
    start = 0
    for number in range(1, len(turns) + 1):
        if number == len(turns) or turns[number] != turns[start]:
            lines.append(_written(number - start, turns[start]))
            start = number
    return "\n".join(lines)


def _written(count: int, turn: Turn) -> str:
    """A line of a plan: `count` turns that are alike. "sequential" says something of tool results only."""
    words = [f"{count}x"] if count > 1 else []
    words += [f"user={turn.user_bytes}", f"reply={turn.model_bytes}"]
    words += [f"results={_list(turn.tools, 'tool_{}')}"] if turn.tools else []
    words += [f"inline={_list(turn.inline, 'image/png')}"] if turn.inline else []
    return " ".join([*words, *(["sequential"] if turn.sequential and turn.tools else [])])


def _list(pairs: tuple[tuple[str, int], ...], default: str) -> str:
    return ",".join(
        str(bytes_) if name == default.format(index) else f"{name}:{bytes_}"
        for index, (name, bytes_) in enumerate(pairs)
    )


# ---- where to start from

START: dict[str, Any] = {
    "title": "",
    "window": "200k",
    "ratio": 2,
    "usage": "yes",
    "usage_turn": "",
    "system": "3000",
    "tools": "0",
    "parameters": "0",
    "turns": "20",
    "user": "200",
    "reply": "400",
    "results": "10k, 5k, 20k",
    "every": "1",
    "sequential": False,
    "inline": "",
    "plan": "",
    "guard": "contextguard/current",
}


def from_scenario(scenario: Scenario) -> dict[str, Any]:
    """The fields that make a scenario of the gallery (the last part of one that has several), its turns as a plan."""
    last = scenario.simulations[-1]
    first = max(last.turns, key=lambda turn: len(turn.tools))
    schema = last.tools[0].schema if last.tools else None
    parameters = len(schema.get("properties", ())) if isinstance(schema, dict) else 0
    return {
        **START,
        "title": f"{scenario.name}, changed",
        "window": str(last.window),
        "ratio": f"{last.ratio:g}",
        "usage": {0: "yes", None: "no"}.get(last.reported_from, "from"),
        "usage_turn": str(turn_number(last.reported_from)) if last.reported_from else "",
        "system": str(last.system_bytes),
        "tools": str(len(last.tools)),
        "parameters": str(parameters),
        "turns": str(len(last.turns)),
        "user": str(first.user_bytes),
        "reply": str(first.model_bytes),
        "results": _list(first.tools, "tool_{}").replace(",", ", "),
        "inline": _list(first.inline, "image/png").replace(",", ", "),
        "sequential": first.sequential,
        "plan": written_plan(last.turns),
    }
