"""What should not be shared is found in every place of a session, and little else is; the corpus is our own."""

import json
import time

import msgspec
import pytest

from guard_core.errors import SettingError
from guard_core.events import ToolCallPart
from guard_core.redaction import Redactor, find, learn_session, own_patterns, redacted_report, redacted_session
from guard_core.redaction.redactor import key_of
from guard_core.report import ReportOptions, build, encode, markdown, page, sheet, verify
from tests.builders import bundled, model, session, tool_call, tool_result, user
from tests.guard_core.redaction import second_corpus, third_corpus
from tests.guard_core.redaction.corpus import LOOK_ALIKES, PLACES, TRUE

GITHUB = TRUE["github classic"][1]
MAIL = TRUE["e-mail"][1]


def holds(text, secret):
    """Is any line of a secret in a JSON text."""
    lines = [line for line in secret.split("\n") if line and not line.startswith(("-----", "Proc-Type:"))]
    return any(line in text or json.dumps(line)[1:-1] in text for line in lines)


@pytest.mark.parametrize("true", [TRUE, second_corpus.TRUE, third_corpus.TRUE], ids=["first", "second", "third"])
def test_at_most_two_of_the_true_shapes_are_missed(true):
    missed = {
        name
        for name, (around, secret) in true.items()
        for put in PLACES.values()
        if holds(json.dumps(Redactor().value(put(around.format(secret)))), secret)
    }
    assert len(true) >= 40
    assert len(missed) <= 2, missed


@pytest.mark.parametrize(
    "look_alikes",
    [LOOK_ALIKES, second_corpus.LOOK_ALIKES, third_corpus.LOOK_ALIKES],
    ids=["first", "second", "third"],
)
def test_at_most_four_of_the_look_alikes_are_taken_for_secrets(look_alikes):
    false = [(text, find(text)) for text in look_alikes if find(text)]
    assert len(look_alikes) >= 40
    assert len(false) <= 4, false


def test_one_value_has_one_stub_wherever_it_is():
    redactor = Redactor()
    assert redactor.text(f"password=plum-Tree-7 and {GITHUB}") == (
        "password=[redacted password 1] and [redacted GitHub token 1]"
    )
    assert redactor.text(f"again {GITHUB}, plum-Tree-7, hunter: {MAIL}") == (
        "again [redacted GitHub token 1], [redacted password 1], hunter: [redacted e-mail address 1]"
    )
    assert redactor.hidden == {"GitHub token": 2, "e-mail address": 1, "password": 2}


def test_a_secret_that_a_quotation_cuts_off_is_hidden_too():
    redactor = Redactor()
    redactor.learn(f"use {GITHUB} please")
    assert (
        redactor.text(f'Your request "use {GITHUB[:20]} …" left')
        == 'Your request "use [redacted GitHub token 1] …" left'
    )
    assert redactor.text(f"use {GITHUB[:30]}") == "use [redacted GitHub token 1]"
    assert redactor.text(f"use {GITHUB[:9]}zzz") == f"use {GITHUB[:9]}zzz"


def test_values_and_kinds_can_be_kept():
    kind = "e-mail address"
    assert Redactor(kept={kind}).text(f"to {MAIL}") == f"to {MAIL}"
    redactor = Redactor(kept={key_of(kind, MAIL)})
    assert redactor.text(f"to {MAIL}, jo@orchard.dev") == f"to {MAIL}, [redacted e-mail address 2]"
    assert [(item.kind, item.shown, item.count) for item in redactor.entries] == [
        (kind, MAIL, 1),
        (kind, "jo@orchard.dev", 1),
    ]


def test_a_review_shows_where_a_value_was_without_showing_others():
    redactor = Redactor()
    redactor.text(f"mail {MAIL} the key {GITHUB} today")
    shown = {item.kind: item for item in redactor.entries}["GitHub token"]
    assert (shown.before, shown.after) == (" the key ", " today")
    assert shown.shown == f"{GITHUB[:6]}… (40 characters)"


def test_patterns_of_ones_own_are_hidden():
    redactor = Redactor(own_patterns(["orchard-*", " Project Plum "]))
    assert redactor.text("ORCHARD-17b of project plum.") == "[redacted own pattern 1] of [redacted own pattern 2]."
    for wrong in ("*", "a*", "x" * 201, "*".join("abcdef")):
        with pytest.raises(SettingError):
            own_patterns([wrong])


@pytest.mark.parametrize(
    "text",
    [
        "password=",
        "eyJ",
        "-----BEGIN ",
        "-----BEGIN RSA PRIVATE KEY-----",
        "a@",
        "a.",
        "://",
        "/home/",
        "+1 ",
        "1-",
        "sk-",
        "cookie: a=",
        "curl -u a:",
        "login a password ",
        "a:5432:a:a:",
        "-us",
        "Private-Lines: 1\n",
        "AAAA",
        "tel: 030 / ",
        "smbclient -U a",
        "htpasswd -b a a ",
        "a:b |chpasswd",
        "/-home-",
        "identified by '",
        "docker login -p ",
    ],
)
def test_time_is_in_proportion_to_the_text(text):
    """Eight times the text takes about eight times as long: quadratic work would take sixty-four times."""

    def took(size):
        begun = time.process_time()
        find(text * (size // len(text)))
        return time.process_time() - begun

    assert took(120_000) < 30 * max(took(15_000), 0.0025)


@pytest.fixture(scope="module")
def leaking():
    """A session with every secret of the corpus in its text, arguments, results, names and title."""
    whole = bundled("long-coding")
    secrets = [around.format(secret) for around, secret in TRUE.values()]
    events = [user(f"Always use {GITHUB} to deploy, and never write to {MAIL} on a Friday.\n" + "\n".join(secrets))]
    for number, secret in enumerate(secrets):
        call = tool_call("deploy", f"s{number}", command=secret, **{secret: secret})
        events += [call, tool_result(json.dumps({"out": secret}), "deploy", f"s{number}")]
    compactions = tuple(
        msgspec.structs.replace(
            item, messages=tuple(user("\n".join(["So far:", *secrets])) for _ in item.messages), note=secrets[0]
        )
        for item in whole.compactions
    )
    renamed = msgspec.structs.replace(whole.events[0], parts=(*whole.events[0].parts, *events[0].parts))
    title = f"Deploy with {GITHUB}"
    return msgspec.structs.replace(
        whole, events=(renamed, *whole.events[1:], *events), title=title, compactions=compactions
    )


def test_nothing_of_a_report_holds_a_secret(leaking):
    redactor = Redactor()
    learn_session(redactor, leaking)
    plain = build(leaking, ReportOptions())
    one = redacted_report(plain, redactor)
    assert holds(encode(plain).decode(), GITHUB)
    for form in (encode(one).decode(), page(one), markdown(one), sheet(one)):
        assert not [name for name, (_, secret) in TRUE.items() if holds(form, secret)]
    assert {item.kind for item in one.hidden} >= {"GitHub token", "e-mail address", "private key"}
    assert "[redacted GitHub token 1]" in one.session.title
    assert verify(one) == []
    assert verify(one, [leaking]) == []
    assert redacted_report(one, Redactor()).sides == one.sides


def test_a_redacted_session_keeps_its_counts_and_pairs(leaking):
    redacted = redacted_session(leaking, Redactor())
    text = msgspec.json.encode(redacted).decode()
    assert not [name for name, (_, secret) in TRUE.items() if holds(text, secret)]
    assert redacted.calls == leaking.calls
    assert [type(part) for event in redacted.events for part in event.parts] == [
        type(part) for event in leaking.events for part in event.parts
    ]
    calls = [part.id for event in redacted.events for part in event.parts if isinstance(part, ToolCallPart)]
    assert calls == [part.id for event in leaking.events for part in event.parts if isinstance(part, ToolCallPart)]


def test_a_session_without_secrets_stays_as_it_is():
    one = session(user("Hello"), tool_call("list", "c1", path="src"), tool_result("a.py", "list", "c1"), model("Done."))
    assert redacted_session(one, Redactor()) == one
