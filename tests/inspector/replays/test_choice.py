"""Settings of a replay as an address carries them."""

import re
from pathlib import Path

import pytest

import inspector.pages
from guard_core.estimation.attribution import attribute
from guard_core.estimation.usage import usage_for
from guard_core.ledger import Ledger
from guard_core.policies import GROUPS, POLICIES, get_policy
from guard_core.replay import replay
from guard_core.summaries.sizes import get_summarizer
from inspector.replays.choice import LABELS, Choice, OwnPolicy, form, ignored, parse_choice
from tests.builders import bundled


def chosen(**query):
    """The choice of an address in which everything is allowed."""
    choice, errors = parse_choice(query)
    assert not errors
    return choice


def test_no_settings_are_the_default():
    assert parse_choice({}) == (Choice(), {})
    assert Choice().query() == ""


def test_defaults_that_were_typed_are_left_out_of_the_address():
    typed = {"policy": "contextguard", "profile": "current", "buffer": "auto", "window": "1M"}
    assert parse_choice(typed, OwnPolicy())[0].pairs() == {"window": "1000000"}


def test_policy_and_profile_are_kept_by_name_where_no_session_is_meant():
    """A session of another agent, or of another version, has others where none is named."""
    typed = {"policy": "claude-code", "profile": "from-2.1.310"}
    assert parse_choice(typed)[0].pairs() == typed
    assert parse_choice({"policy": "contextguard", "window": "1M"})[0].query() == "?policy=contextguard&window=1000000"


CLAUDE_CODE = OwnPolicy("claude-code", "until-2.1.19")


def test_where_nothing_is_chosen_a_session_is_replayed_under_the_policy_of_its_own_agent():
    choice, errors = parse_choice({"max_output": "8000"}, CLAUDE_CODE)
    assert (choice.kind.name, choice.in_profile, choice.pairs()) == (
        "claude-code",
        "until-2.1.19",
        {"max_output": "8000"},
    )
    assert not errors
    assert not parse_choice({}, CLAUDE_CODE)[0].changed
    assert choice.words() == "Claude Code, profile until-2.1.19, max output 8,000"


def test_any_other_policy_is_named_in_the_address_of_such_a_session():
    choice, _ = parse_choice({"policy": "contextguard", "buffer": "10%"}, CLAUDE_CODE)
    assert (choice.query(), choice.in_profile) == ("?policy=contextguard&buffer=10%25", "current")
    newest, _ = parse_choice({"profile": "from-2.1.310"}, CLAUDE_CODE)
    assert (newest.query(), newest.kind.name) == ("?profile=from-2.1.310", "claude-code")
    assert parse_choice({"policy": "claude-code", "profile": "until-2.1.19"}, CLAUDE_CODE)[0].query() == (
        "?policy=claude-code"
    )


def test_the_form_shows_the_own_policy_in_the_profile_of_its_version():
    fields = {field["name"]: field for field in form(Choice(own=CLAUDE_CODE), {}, {}, {})["fields"]}
    selected = {name: option_of(fields[name]) for name in ("policy", "profile")}
    assert selected == {"policy": "claude-code", "profile": "until-2.1.19"}
    assert fields["auto_compact_window"]["note"] == "not used by profile until-2.1.19"


def option_of(field):
    """The value that a menu shows."""
    groups = field.get("groups") or [{"choices": field["choices"]}]
    return next(option["value"] for group in groups for option in group["choices"] if option["selected"])


def test_the_default_policy_alone_is_one_that_was_chosen():
    choice, errors = parse_choice({"profile": "current", "policy": "contextguard"}, OwnPolicy())
    assert (choice.query(), choice.changed, errors) == ("?policy=contextguard", True, {})


@pytest.mark.parametrize(
    ("typed", "window"), [("200000", "200000"), ("200k", "200000"), ("1M", "1000000"), ("128,000", "128000")]
)
def test_a_window_can_be_typed_as_people_write_it(typed, window):
    assert parse_choice({"window": typed})[0].window == window


@pytest.mark.parametrize(
    ("name", "typed"),
    [("window", "12"), ("window", "lots"), ("window", "9" * 30), ("buffer", "120%"), ("cap", "nan"), ("factor", "-1")],
)
def test_a_value_that_is_not_allowed_is_left_out_and_explained(name, typed):
    choice, errors = parse_choice({name: typed, "floor": "1.2"})
    assert choice == chosen(floor="1.2")
    assert list(errors) == [name]


def test_unknown_names_are_answered_with_the_known_ones():
    _, errors = parse_choice({"policy": "magic", "profile": "newest"})
    assert "contextguard" in errors["policy"]
    assert "early" in errors["profile"]


def test_an_address_round_trips():
    choice = chosen(window="150000", buffer="10%", cap="3", profile="early", summary="share:high")
    query = dict(pair.split("=") for pair in choice.query()[1:].replace("%25", "%").replace("%3A", ":").split("&"))
    assert parse_choice(query)[0] == choice


def test_the_form_keeps_what_was_typed_beside_its_error():
    fields = form(Choice(), {"cap": "many"}, {"cap": "a number"}, {"cap": "5"})["fields"]
    cap = next(field for field in fields if field["name"] == "cap")
    assert (cap["value"], cap["error"], cap["placeholder"]) == ("many", "a number", "5")


# ---- settings without effect

OTHER = {
    "buffer": "100%",
    "factor": "9",
    "cap": "1.1",
    "floor": "4",
    "max_turns": "3",
    "recent_ratio": "0.5",
    "summariser_share": "0.1",
    "summary": "mechanical",
}


@pytest.fixture(scope="module")
def ledger():
    return Ledger.of(bundled("timing-gap"))


def numbers(ledger, **settings):
    """Every number of the replay under these settings."""
    given = {"window": "40000", **settings}
    named = {name: value for name, value in given.items() if name not in ("policy", "window", "summary")}
    policy = get_policy(given["policy"], **named)
    summarizer = get_summarizer(given["summary"], ledger) if "summary" in given else None
    usage = usage_for(ledger, attribute(ledger))
    trace = replay(ledger, policy, window=int(given["window"]), usage=usage, summarizer=summarizer)
    return {name: column.tobytes() for name, column in trace.columns.items()}


def another(setting, profile):
    """A value that is not the default of a profile."""
    default = setting.default_in(profile)
    if isinstance(default, bool):
        return "no" if default else "yes"
    if setting.choices:
        return next(value for value in setting.choices if value != default)
    return "0.5" if setting.kind == "share" else "5%" if default == "auto" else str(int(default) + 5)


@pytest.mark.parametrize(
    ("policy", "profile"), [(kind.name, name) for kind in POLICIES.values() for name in kind.profile_names]
)
def test_a_setting_that_is_called_not_used_changes_no_number(ledger, policy, profile):
    plain = numbers(ledger, policy=policy, profile=profile)
    for name in ignored(POLICIES[policy], profile):
        value = OTHER.get(name) or another(POLICIES[policy].setting(name), profile)
        assert numbers(ledger, policy=policy, profile=profile, **{name: value}) == plain, name


@pytest.mark.parametrize("profile", ["tail", "early", "current", "fixed"])
@pytest.mark.parametrize("policy", ["contextguard", "contextguard-sliding"])
def test_the_main_settings_that_are_used_change_a_number(ledger, policy, profile):
    unused = ignored(POLICIES[policy], profile)
    plain = numbers(ledger, policy=policy, profile=profile)
    for name in ("buffer", "factor", "cap", "floor"):
        same = numbers(ledger, policy=policy, profile=profile, **{name: OTHER[name]}) == plain
        assert same == (name in unused), name


def test_a_setting_that_is_not_used_is_left_out_without_an_error():
    choice, errors = parse_choice({"policy": "none", "buffer": "10%", "cap": "many"})
    assert (choice, errors) == (Choice(policy="none"), {})


def test_a_setting_of_another_policy_is_left_out_without_an_error():
    choice, errors = parse_choice({"policy": "codex", "buffer": "many", "limit": "80%"})
    assert (choice, errors) == (Choice(policy="codex", settings=(("limit", "80%"),)), {})


def test_what_the_form_of_a_policy_sends_is_no_error_under_another():
    for sent in map(sent_by_form, POLICIES):
        for name in POLICIES:
            choice, errors = parse_choice({**sent, "policy": name}, OwnPolicy())
            assert (choice.kind.name, choice.profile, errors) == (name, "", {}), sent


def sent_by_form(policy):
    """What a browser sends of a form in which nothing was changed."""
    fields = form(Choice(policy=policy), {}, {}, {})
    return {field["name"]: shown_value(field) for field in (*fields["fields"], *fields["more"])}


def shown_value(field):
    choices = [*field.get("choices", ()), *(item for group in field.get("groups", ()) for item in group["choices"])]
    return next((item["value"] for item in choices if item["selected"]), field["value"])


def test_the_menu_of_policies_has_every_policy_in_its_group():
    field = form(Choice(policy="codex"), {}, {}, {})["fields"][0]
    menu = {group["label"]: [item["value"] for item in group["choices"]] for group in field["groups"]}
    assert menu == {group: [kind.name for kind in kinds] for group, kinds in GROUPS.items()}
    assert shown_value(field) == "codex"


def test_a_policy_without_profiles_is_named_without_one():
    assert Choice(policy="none", window="64000").words() == "No compaction, window 64,000"
    assert chosen(cap="3").words() == "ContextGuard, profile current, cap 3"


def test_words_leave_out_a_setting_that_waits_for_another_one():
    waits = {"policy": "strands-sliding-window", "compression_threshold": "0.5"}
    assert "0.5" not in chosen(**waits).words()
    assert "0.5" in chosen(**waits, proactive="yes").words()
    assert "prune protect" in chosen(policy="opencode", prune_protect="1000").words()  # a recording may have pruning on


def test_the_form_switches_off_what_is_not_used_and_says_why():
    fields = {field["name"]: field for field in form(chosen(profile="tail"), {"cap": "3"}, {}, {"cap": "5"})["fields"]}
    assert {name for name, field in fields.items() if field["ignored"]} == {"factor", "cap", "floor"}
    assert fields["cap"]["note"] == "not used by profile tail"
    assert fields["cap"]["value"] == "3"


def fields_of(query, in_use=None):
    shown = form(parse_choice(query)[0], query, {}, in_use or {})
    return {field["name"]: field for field in (*shown["fields"], *shown["more"])}


def test_the_form_switches_off_what_waits_for_another_setting_and_says_for_which():
    fields = fields_of({"policy": "opencode", "prune_minimum": "5"})
    assert {name for name, field in fields.items() if field["ignored"]} == {"prune_protect", "prune_minimum"}
    assert fields["prune_minimum"]["note"] == f"no effect while {fields['prune']['label']} is off"
    assert fields["prune_minimum"]["value"] == "5"  # comes back with the other


@pytest.mark.parametrize("in_use", [{}, {"prune": "no"}, {"prune": "yes"}])
def test_a_setting_waits_no_longer_once_the_other_is_on(in_use):
    typed = {} if in_use.get("prune") == "yes" else {"prune": "yes"}
    assert not fields_of({"policy": "opencode", **typed}, in_use)["prune_minimum"]["ignored"]


def test_no_setting_has_the_name_of_another_parameter_of_a_page():
    pages = "".join(path.read_text() for path in Path(inspector.pages.__file__).parent.rglob("*.py"))
    parameters = {*LABELS, *re.findall(r'(?:GET\.get(?:list)?\(|number\(request, )"(\w+)"', pages)}
    assert {"at", "side", "show", "from"} <= parameters
    settings = [(kind.name, item.key) for kind in POLICIES.values() for item in kind.settings]
    clashes = [setting for setting in settings if setting[1] in parameters]
    assert clashes == [], "addresses have another parameter of this name: give the setting another `short`"


def test_the_form_of_a_policy_has_exactly_its_settings():
    for name, kind in POLICIES.items():
        shown = form(Choice(policy=name), {}, {}, {})
        names = {field["name"] for field in (*shown["fields"], *shown["more"])}
        others = {"profile": bool(kind.profiles), "summary": kind.summarises, "policy": True, "window": True}
        never = {item.key for item in kind.settings if kind.profiles and set(kind.profile_names) <= set(item.not_in)}
        hidden = {item.key for item in kind.unused() if not item.main}
        expected = {item.key for item in kind.settings} - never - hidden
        assert names == expected | {other for other, has in others.items() if has}, name


@pytest.mark.parametrize(
    ("name", "typed", "words"),
    [
        ("cap", "many", "Factor cap is a number from 0 to 100, not 'many'."),
        ("factor", "-1", "Default factor is a number from 0 to 100, not '-1'."),
        ("policy", "x", "Policy 'x' is not known; allowed are "),
        ("window", "x", "A window is a number of tokens such as 200000, 200k or 1M, not 'x'."),
        ("buffer", "x", "Buffer is auto, a number of tokens or a share of the window such as 15%, not 'x'."),
    ],
)
def test_what_is_wrong_with_a_field_names_it_by_its_label(name, typed, words):
    assert parse_choice({name: typed})[1][name].startswith(words)


def test_texts_stay_as_they_are_typed():
    query = {"policy": "langchain-clear-tool-uses", "placeholder": " [gone] ", "exclude_tools": " read,find "}
    choice, errors = parse_choice(query)
    assert not errors
    assert dict(choice.settings) == {"placeholder": " [gone] ", "exclude_tools": "read,find"}
