"""What a sweep asks: a policy, one or two axes and the figure that is made small, read from a form and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from guard_core.errors import GuardError, SettingError
from guard_core.policies import DEFAULT_POLICY, POLICIES, PolicyKind, Setting, policy_kind
from guard_core.rules.played import PLAYED
from guard_core.sweep import MEASURES, Measure, axis_of, get_measure, grid, policy_at
from guard_core.windows.window import parse_window
from inspector.replays.choice import Choice, parse_choice, sentence

MOST_CELLS = 2_500  # settings of one sweep: 50 by 50, more than a heat map can show
MOST_REPLAYS = 250_000  # settings times sessions
MOST_PRICED_STEPS = 100_000_000  # settings times model calls: what is priced is replayed step by step
LONGEST = 200  # characters of a field that are read
PLACES = {"window": "Context window", "profile": "Profile", "policy": "Policy"}  # axes that are not settings
T = TypeVar("T")


class Question(msgspec.Struct, frozen=True):
    """A checked question. `axes` are names with their values as typed, `settings` hold for every point of the grid;
    `window` in tokens, 0: each session's own. `by` names the figure that is made small."""

    policy: str
    profile: str
    window: int
    axes: tuple[tuple[str, str], ...]
    settings: tuple[tuple[str, str], ...] = ()
    by: str = "compactions"

    @property
    def kind(self) -> PolicyKind:
        return policy_kind(self.policy)

    @property
    def grid_axes(self) -> dict[str, tuple[Any, ...]]:
        """The axes with their values. Raises SettingError."""
        return dict(axis_of(name, values) for name, values in self.axes)

    @property
    def points(self) -> list[dict[str, Any]]:
        """All settings, in the order of the grid. Raises SettingError."""
        return grid(self.grid_axes)

    @property
    def measure(self) -> Measure:
        return MEASURES[self.by]

    @property
    def fixed(self) -> dict[str, str]:
        """The settings of every point."""
        return {**({"profile": self.profile} if self.profile else {}), **dict(self.settings)}

    def choice(self, values: Mapping[str, Any]) -> Choice:
        """One point as the settings of a replay, for an address."""
        kind = policy_kind(str(values.get("policy", self.policy)))
        typed = {"window": str(self.window or ""), **self.fixed, **values, "policy": kind.name}
        named = {
            name if name in PLACES else kind.setting(name).key: str(value)
            for name, value in typed.items()
            if value != ""
        }
        return parse_choice(named)[0]

    def words(self) -> str:
        """The question in words: "ContextGuard: buffer 10k:60k:5k by cap 2,3,5"."""
        grid_words = " by ".join(f"{self.label(name)} {values}" for name, values in self.axes)
        fixed = "".join(f", {name} {value}" for name, value in self.fixed.items())
        window = f", window {self.window:,}" if self.window else ""
        title = "Policies" if self.axes[0][0] == "policy" else self.kind.title
        return f"{title}{fixed}{window}: {grid_words}"

    def label(self, name: str) -> str:
        """How an axis is called."""
        return name.replace("_", " ")


def parse_question(typed: Mapping[str, str], sessions: int, calls: int = 0) -> tuple[Question | None, dict[str, str]]:
    """The question of a form over so many sessions; None with an error in words for each field that is not allowed."""
    texts = {name: typed.get(name, "").strip()[:LONGEST] for name in FIELDS}
    errors: dict[str, str] = {}

    def read(name: str, work: Callable[[], T], otherwise: T) -> T:
        try:
            return work()
        except GuardError as error:
            errors[name] = sentence(error)
            return otherwise

    kind = read("policy", lambda: policy_kind(texts["policy"] or DEFAULT_POLICY), POLICIES[DEFAULT_POLICY])
    profile = texts["profile"] if texts["profile"] in kind.profile_names else ""
    window = read("window", lambda: parse_window(texts["window"]) if texts["window"] else 0, 0)
    read("figure", lambda: get_measure(texts["figure"] or "compactions"), MEASURES["compactions"])
    none: tuple[tuple[str, str], ...] = ()
    varied = {texts[f"axis{number}"].replace("-", "_"): texts[f"values{number}"] for number in ("1", "2")}
    among = _Among(kind, _profiles(varied, profile), frozenset(varied))
    settings = read("settings", lambda: _settings(among, texts["settings"]), none)
    axes = []
    for number in ("1", "2"):
        name, values = texts[f"axis{number}"].replace("-", "_"), texts[f"values{number}"]
        if not name and not values and number == "2":
            continue
        place = f"values{number}"
        if not name:
            instead = ", or empty its values" if number == "2" else ""
            errors[f"axis{number}"] = f"Choose what this axis varies{instead}."
            continue
        read(place, lambda name=name, values=values: _check_axis(among, settings, name, values), None)  # type: ignore[misc]
        axes.append((name if name in PLACES or place in errors else kind.setting(name).name, values))
    question = Question(kind.name, profile, window, tuple(axes), settings, texts["figure"] or "compactions")
    if not errors:
        read("", lambda: _check(question, sessions, calls), None)
    return (None if errors else question), errors


FIELDS = ("policy", "profile", "window", "figure", "settings", "axis1", "values1", "axis2", "values2")


class _Among(NamedTuple):
    """What settings of a sweep have their effect among: the policy, its profiles there, and what axes vary."""

    kind: PolicyKind
    profiles: tuple[str, ...]
    varied: frozenset[str]

    def check(self, setting: Setting, fixed: Mapping[str, str]) -> None:
        """Raises SettingError for a setting that has no effect in any of the profiles, or while another is off."""
        if "policy" in self.varied:
            return
        in_effect = [profile for profile in self.profiles if setting not in self.kind.unused(profile)]
        if not in_effect:
            names = " or ".join(profile or self.kind.default_profile for profile in self.profiles)
            raise SettingError(f"{setting.title} has no effect in profile {names}")
        needed = setting.needs and self.kind.setting(setting.needs)
        if not needed or {needed.name, needed.key} & self.varied:
            return
        if needed.name not in fixed and self.kind.name in PLAYED:  # a recording may have turned it on
            return
        values = [{needed.name: needed.parse(fixed.get(needed.name, needed.default_in(name)))} for name in in_effect]
        if all(self.kind.waits_for(setting, value) for value in values):
            raise SettingError(f"{setting.title} has no effect while {needed.title} is off: fix that, too")


def _profiles(varied: Mapping[str, str], profile: str) -> tuple[str, ...]:
    """The profiles of a sweep: those of an axis, else the chosen one."""
    if "profile" not in varied:
        return (profile,)
    try:
        return tuple(str(value) for value in axis_of("profile", varied["profile"])[1])
    except SettingError:  # said of its axis
        return (profile,)


def _settings(among: _Among, text: str) -> tuple[tuple[str, str], ...]:
    """Settings as typed, "name=value, name=value". Raises SettingError."""
    kind, pairs = among.kind, {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, sign, value = item.partition("=")
        if not sign or not value.strip():
            raise SettingError(f"a setting is written name=value, not {item[:40]!r}")
        setting = kind.setting(name)
        pairs[setting.name] = str(setting.parse(value.strip()))
    for name in pairs:
        among.check(kind.setting(name), pairs)
    return tuple(pairs.items())


def fixed_names(text: str) -> set[str]:
    """The names in settings as typed, as far as they can be read; none is checked."""
    return {part.partition("=")[0].strip().replace("-", "_") for part in text.split(",")}


def _check_axis(among: _Among, settings: tuple[tuple[str, str], ...], name: str, values: str) -> None:
    """Each value of an axis alone. Raises SettingError or UnknownName."""
    kind = among.kind
    if not values:
        raise SettingError("the values are a range such as 100k:200k:10k, or a list such as 2, 3, 5")
    plain, items = axis_of(name, values)
    if len(items) > MOST_CELLS:
        raise SettingError(f"the axis has {len(items):,} values; at most {MOST_CELLS:,} are allowed")
    if plain not in PLACES:
        among.check(kind.setting(plain), dict(settings))
    elif plain == "profile" and not kind.profiles and "policy" not in among.varied:
        raise SettingError(f"{kind.title} has no profiles")
    if plain != "window":
        fixed = {key: value for key, value in settings if plain != "policy"}
        for item in items:
            policy_at({plain: item}, kind.name, fixed)


def _check(question: Question, sessions: int, calls: int) -> None:
    """All points together. Raises SettingError or UnknownName."""
    names = [name for name, _ in question.axes]
    if len(set(names)) < len(names):
        raise SettingError(f"both axes vary {question.label(names[0])}; choose two different ones")
    fixed = [name for name in names if name in question.fixed]
    if fixed:
        raise SettingError(f"{question.label(fixed[0])} is an axis and cannot have a fixed value too")
    if question.window and "window" in names:
        raise SettingError("the window is an axis and cannot have a fixed value too")
    points = question.points
    if len(points) > MOST_CELLS:
        raise SettingError(f"the grid has {len(points):,} settings; at most {MOST_CELLS:,} are allowed")
    if len(points) * sessions > MOST_REPLAYS:
        raise SettingError(
            f"{len(points):,} settings over {sessions:,} sessions are {len(points) * sessions:,} replays; at most "
            f"{MOST_REPLAYS:,} are allowed"
        )
    if question.measure.priced and len(points) * calls > MOST_PRICED_STEPS:
        raise SettingError(
            f"{len(points):,} settings over {calls:,} model calls are {len(points) * calls:,} steps to price; at most "
            f"{MOST_PRICED_STEPS:,} are allowed"
        )
    for point in points:
        policy_at(point, question.policy, question.fixed)
