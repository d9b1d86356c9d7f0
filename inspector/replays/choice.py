"""The settings of a replay: what a URL says, checked, as a form shows them and as the engine takes them.

What can be set comes from what the policies publish (guard_core.policies.settings); nothing here knows a policy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlencode

import msgspec

from guard_core.errors import GuardError, UnknownName
from guard_core.findings.facts import Facts
from guard_core.policies import DEFAULT_POLICY, GROUPS, POLICIES, PolicyKind, Setting, policy_kind
from guard_core.policies.settings import CHOICE, COUNT, LARGEST_COUNT, NUMBER, SHARE, SIZE, SWITCH, Value
from guard_core.rules.played import PLAYED
from guard_core.windows.window import parse_window

SUMMARIES = {
    "": "as recorded",
    "share:low": "low: 10 %",
    "share:nominal": "nominal: 30 %",
    "share:high": "high: 100 %",
    "mechanical": "mechanical",
}
LABELS = {"policy": "Policy", "profile": "Profile", "window": "Context window", "summary": "Summaries"}
# The parameters of an address that settings of a replay may use, whatever the policy.
NAMES = (*LABELS, *dict.fromkeys(setting.key for kind in POLICIES.values() for setting in kind.settings))
PROFILES = {name for kind in POLICIES.values() for name in kind.profile_names}
ALLOWED = "; allowed are "  # before the names that an error lists
FITS = 200  # characters of an error beside a field
LONGEST = 60  # characters of a value that are read
# Of sliders: the widest in tokens where the window is not known, the largest share of the window in per cent, the least
# that a number without bounds reaches, and how many places a slider has at least.
WIDEST, MOST_SHARE, SMALLEST_RANGE, FINE = 200_000, 100, 10, 200


class OwnPolicy(msgspec.Struct, frozen=True):
    """What is replayed where nothing is chosen: the policy of the session's own agent, in the profile of its version;
    ContextGuard where that is not known."""

    policy: str = DEFAULT_POLICY
    profile: str = ""

    def profile_of(self, kind: PolicyKind) -> str:
        """The profile of a policy where none is chosen, "" for a policy without profiles."""
        return self.profile if self.profile and kind.name == self.policy else kind.default_profile


class Choice(msgspec.Struct, frozen=True):
    """The settings of one replay, in the plain form of the URL; an empty text is the default.

    `settings` are those of the policy that are not at their default, as (name in an address, value), in its order.
    `own` is what the session has where no policy and no profile is chosen.
    """

    policy: str = ""
    profile: str = ""
    window: str = ""
    summary: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    own: OwnPolicy = OwnPolicy()

    @property
    def kind(self) -> PolicyKind:
        """The policy that is chosen."""
        return policy_kind(self.policy or self.own.policy)

    @property
    def in_profile(self) -> str:
        """The profile that is replayed, "" for a policy without profiles."""
        return self.profile or self.own.profile_of(self.kind)

    @property
    def changed(self) -> bool:
        return self != Choice(own=self.own)

    def pairs(self) -> dict[str, str]:
        """Everything that is not at its default, by its name in an address."""
        first = {name: getattr(self, name) for name in ("policy", "profile", "window")}
        pairs = first | dict(self.settings) | {"summary": self.summary}
        return {name: value for name, value in pairs.items() if value}

    def query(self, **more: Any) -> str:
        """The query string of these settings and more, "" or with its question mark; defaults are left out."""
        text = urlencode({name: value for name, value in (self.pairs() | more).items() if value not in ("", None)})
        return f"?{text}" if text else ""

    def engine_settings(self, facts: Facts | None = None) -> dict[str, Any]:
        """What the policy is made with; texts, which the engine parses. A recording of the policy's own
        agent gives some."""
        changes = {self.kind.setting(name).name: value for name, value in self.settings}
        given = {**({"profile": self.in_profile} if self.in_profile else {}), **changes}
        return given if facts is None else facts.made_with(self.kind, given)

    def engine_names(self) -> set[str]:
        """The names, as the engine has them, of the settings that were set by hand."""
        typed = {name for name in ("policy", "profile", "summary") if getattr(self, name)}
        return {*typed, *(self.kind.setting(name).name for name, _ in self.settings)}

    def words(self) -> str:
        """The settings in words, for headings: "ContextGuard, profile current, window 200,000, buffer 10%".

        Without those that wait for another one; of an agent's policy a recording may have turned that one on.
        """
        profile = self.in_profile
        start = [self.kind.title, *([f"profile {profile}"] if profile else [])]
        pairs = self.pairs()
        unsaid = {"policy", "profile", *(() if self.kind.name in PLAYED else waiting(self.kind, profile, pairs))}
        changes = {name: value for name, value in pairs.items() if name not in unsaid}
        return ", ".join([*start, *(f"{name.replace('_', ' ')} {_grouped(value)}" for name, value in changes.items())])


def _grouped(value: str) -> str:
    """A whole number with comma groups; anything else as it is."""
    return f"{int(value):,}" if value.isascii() and value.isdigit() else value


def parse_choice(query: Mapping[str, str], own: OwnPolicy | None = None) -> tuple[Choice, dict[str, str]]:
    """The settings of a query string, and an error in words for each that is not allowed (and is then left out).

    `own` is what the session has that is replayed; policy and profile are kept by name where no session is meant, for
    each has its own. A setting at its default is left out, but not of an agent's policy: the default there is what a
    recording gives.
    Settings that the chosen policy does not have or use are left out without an error, and so is a profile that only
    other policies have: a form whose policy is changed still sends those of the policy before.
    """
    texts = {name: query.get(name, "").strip()[:LONGEST] for name in NAMES}
    errors: dict[str, str] = {}

    def read(name: str, parse: Any) -> str:
        try:
            return str(parse(texts[name])) if texts[name] else ""
        except GuardError as error:
            errors[name] = sentence(error)
            return ""

    of_session = own or OwnPolicy()
    policy = read("policy", lambda text: _one_of("policy", text, POLICIES))
    kind = policy_kind(policy or of_session.policy)
    default_profile = of_session.profile_of(kind)
    chosen_profile = read("profile", lambda text: _profile(kind, text))
    profile = chosen_profile or default_profile
    unused = ignored(kind, profile)
    settings = []
    for setting in kind.settings:
        value = "" if setting.key in unused else read(setting.key, lambda text, item=setting: _plain(item, text))
        if value and setting.verbatim:
            value = query[setting.key][:LONGEST]  # with the blanks at its ends
        if value and (kind.name in PLAYED or value != plain(setting.default_in(profile))):
            settings.append((setting.key, value))
    choice = Choice(
        policy="" if own is not None and policy == own.policy else policy,
        profile="" if own is not None and chosen_profile == default_profile else chosen_profile,
        window=read("window", parse_window),
        summary=read("summary", lambda text: _one_of("summary", text, SUMMARIES)) if kind.summarises else "",
        settings=tuple(settings),
        own=of_session,
    )
    if policy and not choice.changed:  # the default policy, and nothing else: asked for by name, so that it is shown
        choice = Choice(policy=policy, own=of_session)
    return choice, errors


def ignored(kind: PolicyKind, profile: str) -> dict[str, str]:
    """The settings that have no effect in a profile of a policy, each with what leaves it out."""
    unused = {setting.key: f"not used by profile {profile or kind.default_profile}" for setting in kind.unused(profile)}
    return unused if kind.summarises else {**unused, "summary": f"not used by {kind.title.lower()}"}


def waiting(kind: PolicyKind, profile: str, values: Mapping[str, str]) -> dict[str, str]:
    """The settings that have no effect while another one is off, each with that; `values` by name in an address, as
    typed or in use. What cannot be read counts as the default."""

    def value_of(setting: Setting) -> Value:
        default = setting.default_in(profile or kind.default_profile)
        try:
            return setting.parse(text) if (text := values.get(setting.key, "")) else default
        except GuardError:
            return default

    in_use = {setting.name: value_of(setting) for setting in kind.settings}
    needed = {setting.key: kind.waits_for(setting, in_use) for setting in kind.settings}
    return {key: f"no effect while {item.label} is off" for key, item in needed.items() if item is not None}


def no_longer_taken(pairs: Mapping[str, str], own: OwnPolicy | None = None) -> dict[str, str]:
    """Of the settings of an address or a preset, by name, those without which it is replayed: its policy does not have
    them, does not use them, or does not allow the value. `own` is as for `parse_choice`."""
    choice, errors = parse_choice(pairs, own)
    kind = choice.kind
    taken = {*LABELS, *(setting.key for setting in kind.settings)} - {*errors, *ignored(kind, choice.in_profile)}
    if pairs.get("profile", "") not in kind.profile_names:
        taken.discard("profile")
    return {name: value for name, value in pairs.items() if name not in taken}


def _one_of(name: str, text: str, known: Any) -> str:
    if text not in known:
        allowed = ", ".join(item for item in known if item)
        raise UnknownName(f"{LABELS[name]} {text!r} is not known{ALLOWED}{allowed}.")
    return text


def _profile(kind: PolicyKind, text: str) -> str:
    """A profile of the policy, "" for one that only others have. Raises UnknownName."""
    of_another = text in PROFILES.difference(kind.profile_names)
    return "" if of_another or not kind.profiles else _one_of("profile", text, kind.profile_names)


def _plain(setting: Setting, text: str) -> str:
    """A setting as typed in its plain form. Raises SettingError."""
    return plain(setting.parse(text.replace(",", ".") if setting.kind in (NUMBER, SHARE) else text, setting.label))


def plain(value: Value) -> str:
    """A value as an address has it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, float) else str(value)


def sentence(error: GuardError) -> str:
    """An error of the engine as a page says it: with a capital letter and a full stop."""
    return sentence_of(str(error))


def sentence_of(text: str) -> str:
    """Words as a sentence: with a capital letter and a full stop."""
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith('.') else '.'}"


class _Fields:
    """The fields of a form of settings: what was typed, the errors beside it, and as placeholders the values in use."""

    def __init__(
        self, choice: Choice, typed: Mapping[str, str], errors: Mapping[str, str], in_use: Mapping[str, str]
    ) -> None:
        self.kind, self.values, self.profile = choice.kind, choice.pairs(), choice.in_profile
        self._typed, self._errors, self._in_use = typed, errors, in_use
        self._unused = ignored(self.kind, self.profile)
        # By name, what leaves a setting without an effect.
        self._off = {**waiting(self.kind, self.profile, {**in_use, **self.values}), **self._unused}
        self._window = _number(self.values.get("window") or in_use.get("window", "")) or WIDEST

    def field(self, name: str, label: str, help_text: str = "", mode: str = "decimal", **more: Any) -> dict[str, Any]:
        """One field, as the template takes it."""
        error, off = self._errors.get(name, ""), self._off
        return {
            "name": name,
            "label": label,
            "mode": mode,
            "value": self._typed.get(name, "")[:LONGEST] if error or name in off else self.values.get(name, ""),
            "placeholder": "" if name in off else self._in_use.get(name, ""),
            "error": error,
            "ignored": name in off,
            "note": brief(error) or off.get(name, help_text),
            **more,
        }

    def of_settings(self, *, main: bool) -> Iterator[dict[str, Any]]:
        """The policy's settings, the main ones or all others. One that no profile uses has no field; one that another
        profile uses has it among the main ones, but off."""
        profiles = set(self.kind.profile_names) if self.kind.profiles else None
        for item in self.kind.settings:
            is_never_used = profiles is not None and profiles <= set(item.not_in)
            if item.main == main and not is_never_used and (main or item.key not in self._unused):
                yield self._of_setting(item)

    def _of_setting(self, setting: Setting) -> dict[str, Any]:
        options = ("yes", "no") if setting.kind == SWITCH else setting.choices if setting.kind == CHOICE else ()
        value = self.values.get(setting.key, "")
        if options:  # nothing chosen is the default, also that of another profile
            default = _option("", f"default: {plain(setting.default_in(self.profile))}", value)
            more: dict[str, Any] = {"choices": [default, *(_option(item, item, value) for item in options)]}
        else:
            more = {"slider": slider(setting, value or self._in_use.get(setting.key, ""), self._window)}
        mode = "text" if setting.kind == SIZE else "decimal"
        unit = f", {setting.unit}" if setting.unit and setting.kind == COUNT else ""
        return self.field(setting.key, setting.label, f"{setting.help}{unit}", mode, **more)


def form(
    choice: Choice, typed: Mapping[str, str], errors: Mapping[str, str], in_use: Mapping[str, str]
) -> dict[str, Any]:
    """The form: what was typed, the errors beside it, and as placeholders the values that are in use.

    `fields` are always shown, `more` are the policy's other settings. Two forms of one `shape` have the same fields.
    """
    kind, of = choice.kind, _Fields(choice, typed, errors, in_use)
    policies = [
        {"label": group, "choices": [_option(item.name, item.title, kind.name) for item in kinds]}
        for group, kinds in GROUPS.items()
    ]
    fields = [of.field("policy", LABELS["policy"], kind.help, groups=policies)]
    if profiles := [_option(item.name, item.name, of.profile) for item in kind.profiles]:
        about = next((item.help for item in kind.profiles if item.name == of.profile), "")
        fields.append(of.field("profile", LABELS["profile"], about, choices=profiles))
    fields.append(of.field("window", LABELS["window"], "tokens, such as 200k or 1M", mode="text"))
    fields.extend(of.of_settings(main=True))
    if kind.summarises:
        sizes = [_option(value, label, choice.summary) for value, label in SUMMARIES.items()]
        share = "size, as a share of the policy's summary budget"
        fields.append(of.field("summary", LABELS["summary"], share, choices=sizes))
    more = list(of.of_settings(main=False))
    # Said beside the button: what is not allowed may be far from it.
    wrong, error = [item["label"] for item in (*fields, *more) if item["error"]], errors.get("", "")
    error = f"Not replayed: correct {', '.join(wrong)}. {error}".strip() if wrong else error
    return {
        "policy": kind.name,
        "shape": " ".join([kind.name, *(item["name"] for item in (*fields, *more))]),
        "fields": fields,
        "more": more,
        "open": any(of.values.get(item["name"]) or item["error"] for item in more),
        "changed": choice.changed or bool(errors),
        "error": error,
    }


def brief(error: str) -> str:
    """An error for a page: without the names that are allowed where these are many, for its menu has them."""
    words, _, names = error.partition(ALLOWED)
    return f"{words}." if names and len(error) > FITS else error


def slider(setting: Setting, value: str, window: float) -> dict[str, Any] | None:
    """The range of a slider beside the field of a setting, at `value` (as typed, or in use); None for a setting that is
    no number. Limits in tokens reach up to the window in tokens, other numbers without an upper bound to four times
    the value."""
    if setting.kind == SIZE:  # as a share of the window
        return {"least": 0, "most": MOST_SHARE, "step": 1, "value": _number(value) if "%" in value else 0, "unit": "%"}
    if setting.kind not in (COUNT, NUMBER, SHARE):
        return None
    number = _number(value)
    if setting.kind == SHARE:
        return {"least": f"{setting.least:g}", "most": 1, "step": "any", "value": f"{number:g}", "unit": ""}
    beyond = window if setting.unit == "tokens" else max(4 * number, SMALLEST_RANGE)
    most = setting.most if setting.most is not None and setting.most <= beyond else max(beyond, number)
    step = ("any" if setting.kind == NUMBER else 1) if most <= FINE else int(most) // FINE
    return {"least": f"{setting.least:g}", "most": f"{most:.0f}", "step": step, "value": f"{number:.12g}", "unit": ""}


def _number(text: str) -> float:
    """The number of a value as it is shown, 0 where it is none."""
    try:
        number = float(text.replace(",", "").removesuffix("%"))
    except ValueError:
        return 0.0
    return number if 0 <= number <= LARGEST_COUNT else 0.0


def _option(value: str, label: str, chosen: str) -> dict[str, Any]:
    return {"value": value, "label": label, "selected": value == chosen}


def policy_title(name: str) -> str:
    """How a page calls a policy."""
    return POLICIES[name].title if name in POLICIES else "This policy"
