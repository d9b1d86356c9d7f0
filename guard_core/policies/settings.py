"""Settings are data: what a policy publishes of each of its settings, and the one way they are read.

The command line, the what-if form, the query string, sweep axes and the documentation are made from these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from guard_core.errors import SettingError, UnknownName
from guard_core.sizes import parse_count
from guard_core.windows.window import parse_buffer

if TYPE_CHECKING:
    from guard_core.events import Event
    from guard_core.ledger import Ledger
    from guard_core.policies.base import Policy
    from guard_core.sessions import Session
    from guard_core.views import View

Value = str | int | float | bool
COUNT, NUMBER, SHARE, SWITCH, SIZE, CHOICE, TEXT = "count", "number", "share", "switch", "size", "choice", "text"
LARGEST_COUNT, LARGEST_NUMBER = 10**12, 10**6  # ours: products with any estimate stay exact in a double and in 64 bits
_SWITCHES = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


class Setting(msgspec.Struct, frozen=True, omit_defaults=True):
    """One setting of a policy.

    `kind`: count (a whole number), number, share (0 to 1), switch, size ("auto", tokens, or a share of the window such
    as 15%), choice or text. `default` is that of the policy's first profile, `profiles` holds those of others.
    `not_in` are profiles in which it has no effect; `needs` names another setting that has to be on for it to have one:
    a switch, or what is off at 0 or empty. `short` is its name in an address and in a form where the full one
    is long; `main` settings are shown first. `sweep` are the values that a sweep tries where no axis is named. A
    `verbatim` text is what a message says, blanks at its ends included; of any other text they are left out.
    """

    name: str
    label: str
    kind: str
    default: Value
    help: str
    source: str
    unit: str = ""
    least: float = 0
    most: float | None = None
    choices: tuple[str, ...] = ()
    profiles: dict[str, Value] = {}
    not_in: tuple[str, ...] = ()
    needs: str = ""
    short: str = ""
    main: bool = False
    sweep: tuple[Value, ...] = ()
    verbatim: bool = False

    @property
    def key(self) -> str:
        """Its name in an address."""
        return self.short or self.name

    def default_in(self, profile: str) -> Value:
        """The default in a profile: `default` where it has none of its own."""
        return self.profiles.get(profile, self.default)

    @property
    def title(self) -> str:
        """Its label with its name, for messages."""
        return self.label if self.label.lower() == self.name else f"{self.label} ({self.name})"

    @property
    def allowed(self) -> str:
        """What may be typed, in words."""
        if self.choices:
            return ", ".join(self.choices)
        if self.kind in (SWITCH, TEXT, SIZE):
            return {SWITCH: "true, false", TEXT: "any text", SIZE: "auto, tokens, 15%"}[self.kind]
        return f"from {self.least:g}" + ("" if self._published_most is None else f" to {self._published_most:g}")

    @property
    def _published_most(self) -> float | None:
        """The largest value that is allowed, None where there is only that of any number."""
        return 1 if self.kind == SHARE and self.most is None else self.most

    def parse(self, value: Any, what: str = "") -> Value:
        """The value from text or from a value of its own type. Raises SettingError with what is allowed; `what` is how
        it calls the setting."""
        if self.verbatim:
            return str(value)
        text, what = str(value).strip(), what or self.title
        if self.kind == SWITCH:
            if text.lower() not in _SWITCHES:
                raise SettingError(f"{what} is true or false, not {text[:40]!r}")
            return _SWITCHES[text.lower()]
        if self.kind == SIZE:
            return parse_buffer(text, what)
        if self.kind == CHOICE:
            if text not in self.choices:
                raise SettingError(f"{what} is one of {', '.join(self.choices)}, not {text[:40]!r}")
            return text
        if self.kind == COUNT:
            return parse_count(text, what, int(self.least), int(self.most or LARGEST_COUNT), self.unit)
        return self._number(text, what) if self.kind in (NUMBER, SHARE) else text

    def _number(self, text: str, what: str) -> float:
        most = self._published_most or LARGEST_NUMBER
        try:
            number = float(text.replace("_", ""))
        except ValueError:
            number = -1.0
        if not self.least <= number <= most:  # also refuses nan
            raise SettingError(f"{what} is a number from {self.least:g} to {most:,g}, not {text[:40]!r}")
        return number


class Profile(msgspec.Struct, frozen=True):
    """A named set of defaults: one version of a system, or one of its documents."""

    name: str
    help: str


class KnownProblem(msgspec.Struct, frozen=True):
    """A defect that users of a system reported and that its policy here reproduces. `help` is a sentence, `source`
    where it was reported."""

    name: str
    help: str
    source: str


BEGINS_WITH_ANSWER = KnownProblem(
    "Requests that begin with an answer",
    (
        "What is left of a conversation may begin with an answer of the model. Anthropic's API refuses it: the first "
        "message has to be the user's."
    ),
    "BerriAI/litellm#6660",
)


class PublishedResult(msgspec.Struct, frozen=True):
    """What others measured of a system, beside what is computed here of the same. `help` is a sentence."""

    name: str
    help: str
    source: str


class SummariserPrompt(msgspec.Struct, frozen=True):
    """What a summariser is sent: its instructions and the conversation."""

    system: str
    user: str


class RecordedRuns(msgspec.Struct, frozen=True):
    """What recorded runs of a library (policy vectors, guard_core.conformance.policies) judge a policy by.

    `names` gives our setting for a parameter of the library where the two names differ, `settings_of` all settings of a
    run's parameters where values differ, too, `settings` what the runs were made under besides, `window` the context
    window of their model in tokens where no parameter says it. `tokens` gives the tokens that they note of a list over
    so many events, where those are not compared; `tokens_column` is the column of ours with the tokens that they note,
    where those are not the ones compared. `judges_acted` is False where what the file calls acted says only that the
    view changed, which is judged by the view. `leaves_out_calls` says that the library was given the answers without
    their tool calls. `refused_by` counts the request that the scripted provider refuses where that is not its
    characters / 4. `counts_words` says that runs without counts had those of pydantic-ai's FunctionModel
    (guard_core.conformance.libraries.function_model). `joins_user_messages` says that the library sends adjacent
    messages of the user as one, `writes_summaries` that the policy needs the texts of the scripted summaries, and
    `strips_summaries` that the library takes the blanks at the ends of a summary away. `joint` is what the file puts
    between the texts of one message.
    """

    library: str
    strategy: str
    names: dict[str, str] = {}
    settings: dict[str, Value] = {}
    window: int = 200_000
    tokens: Callable[[Ledger, int], int] | None = None
    judges_acted: bool = True
    tokens_column: str = ""
    settings_of: Callable[[Mapping[str, Any]], dict[str, Any]] = dict
    leaves_out_calls: bool = False
    refused_by: Callable[[Ledger, View], int] | None = None
    counts_words: bool = False
    joins_user_messages: bool = False
    writes_summaries: bool = False
    strips_summaries: bool = False
    joint: str = "\n"


class PolicyKind(msgspec.Struct, frozen=True, eq=False):
    """A policy as it is listed: its names, what it does in a sentence, its settings, and how it is made.

    `build` gets a value for every setting, and the profile's name as `profile` where there are profiles. `lanes` runs
    many settings over one session at once where the policy can (guard_core.sweep). `of_session` gives the settings that
    a recording of the policy's own agent gives. `compacts`, `summarises`: does it ever do so. `prompt` writes
    out what the summariser is sent for some messages under a window, where that is known. `known_problems` are those
    that the policy reproduces. `judged_by` are recorded runs of the library by which it is judged. `parts_pairs` says,
    where it does, when the library sends a tool call without its result or a result without its call. `results` are
    those that somebody published, beside ours.
    """

    name: str
    title: str
    help: str
    build: Callable[..., Any]
    settings: tuple[Setting, ...] = ()
    profiles: tuple[Profile, ...] = ()
    lanes: Callable[..., Any] | None = None
    of_session: Callable[[Session], dict[str, Any]] | None = None
    compacts: bool = True
    summarises: bool = True
    prompt: Callable[[Policy, int, Iterable[Event]], SummariserPrompt] | None = None
    known_problems: tuple[KnownProblem, ...] = ()
    results: tuple[PublishedResult, ...] = ()
    judged_by: RecordedRuns | None = None
    parts_pairs: str = ""

    @property
    def default_profile(self) -> str:
        """The profile where none is named; "" for a policy without profiles."""
        return self.profiles[0].name if self.profiles else ""

    @property
    def profile_names(self) -> tuple[str, ...]:
        return tuple(profile.name for profile in self.profiles)

    def setting(self, name: str) -> Setting:
        """A setting by its name or its name in an address. Raises SettingError with the names that are known."""
        plain = name.strip().replace("-", "_")
        for setting in self.settings:
            if plain in (setting.name, setting.key):
                return setting
        known = ", ".join(setting.name for setting in self.settings)
        has = f"it has {known}" if known else "it has none"
        raise SettingError(f"{self.title} has no setting {name[:40]!r}; {has}")

    def recorded(self, session: Session | None) -> dict[str, Any]:
        """The settings that a recording of the policy's own agent gives; none without a session."""
        return self.of_session(session) if session is not None and self.of_session is not None else {}

    def unused(self, profile: str = "") -> tuple[Setting, ...]:
        """The settings that have no effect in a profile."""
        chosen = profile or self.default_profile
        return tuple(setting for setting in self.settings if chosen in setting.not_in)

    def waits_for(self, setting: Setting, values: Mapping[str, Value]) -> Setting | None:
        """The setting that has to be on before this one has an effect, where it is off; `values` has it by its name."""
        if not setting.needs:
            return None
        value = values[setting.needs]
        is_off = not (value.strip() if isinstance(value, str) else value)
        return self.setting(setting.needs) if is_off else None

    def make(self, profile: str | None = None, **changes: Any) -> Policy:
        """The policy with some settings changed. Raises UnknownName and SettingError."""
        policy: Policy = self.build(**self.values(profile, **changes))
        return policy

    def values(self, profile: str | None = None, **changes: Any) -> dict[str, Any]:
        """What `build` gets: the profile's name where there are profiles (else it is ignored), and every setting.

        Raises as `make`.
        """
        chosen = profile or self.default_profile
        if self.profiles and chosen not in self.profile_names:
            known = f"{self.title} has {', '.join(self.profile_names)}"
            raise UnknownName(f"there is no profile {str(profile)[:40]!r}; {known}")
        values: dict[str, Any] = {setting.name: setting.default_in(chosen) for setting in self.settings}
        for name, value in changes.items():
            setting = self.setting(name)
            values[setting.name] = setting.parse(value)
        return {"profile": chosen, **values} if self.profiles else values
