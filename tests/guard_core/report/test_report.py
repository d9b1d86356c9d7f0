"""A report says what its session gives, as data that can be checked, and its pages hold no markup of a session."""

import csv
import io
import json
import re
from html.parser import HTMLParser

import msgspec
import pytest

from guard_core.errors import GuardError, SettingError
from guard_core.events import Event, Role, TextPart
from guard_core.findings import Facts, recorded_findings, recorded_verdict
from guard_core.report import (
    ReportOptions,
    badge,
    build,
    decode,
    encode,
    markdown,
    page,
    sealed,
    sheet,
    verify,
    verify_document,
)
from guard_core.report.document import Remark, digest_of
from guard_core.report.extracts import extract
from guard_core.report.levels import at_level
from guard_core.report.tables import ReportPart
from guard_core.report.words import compaction_row, figures
from guard_core.sessions import Evidence, ModelCall, RecordedCompaction
from guard_core.views import Inserted, Span
from tests.builders import bundled, model, session, tool_call, tool_result, user
from tests.guard_core.checker.cases import in_characters

HOSTILE = (
    "<script>alert(1)</script><img src=https://evil.example/x onerror=alert(2)>\"' --> ]]> </style></title> "
    "[click](javascript:alert(3)) ![](https://evil.example/p.png) @everyone #1 | cell |\n=1+1 \u202eevil\u202c \x1b[31m"
)


@pytest.fixture(scope="module")
def recording():
    return bundled("long-coding")


@pytest.fixture(scope="module")
def plain(recording):
    return build(recording, ReportOptions())


@pytest.fixture(scope="module")
def report(recording):
    return build(recording, ReportOptions(policy="codex"))


def with_hostile_words(one):
    """The session with hostile text wherever the format has room for text."""
    texts = (
        Event(Role.USER, (TextPart(HOSTILE),)),
        tool_call(HOSTILE, "h", path=HOSTILE),
        tool_result(HOSTILE, HOSTILE),
    )
    compactions = tuple(
        msgspec.structs.replace(
            item, messages=tuple(user(HOSTILE) for _ in item.messages), note=HOSTILE, trigger=HOSTILE
        )
        for item in one.compactions
    )
    events = (*(user(HOSTILE) if event.starts_turn() else event for event in one.events), *texts)
    called = tuple(msgspec.structs.replace(call, model=HOSTILE) for call in one.calls)
    return msgspec.structs.replace(
        one, events=events, calls=called, compactions=compactions, title=HOSTILE, agent=HOSTILE, model=HOSTILE
    )


class Elements(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self, html):
        super().__init__()
        self.names, self.attributes, self.text = set(), [], []
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.names.add(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text.append(data)


def test_it_holds_the_verdict_findings_and_compactions_of_the_session(recording, report):
    facts = Facts.of(recording)
    findings = recorded_findings(facts)
    side, replayed = report.sides
    assert side.verdict.sentence == recorded_verdict(facts, findings).sentence
    assert [claim.sentence for claim in side.findings] == [finding.sentence for finding in findings]
    assert [item.step for item in side.compactions] == [item.step for item in facts.counts.compactions]
    assert (side.outcome.peak, side.outcome.peak_step) == (facts.requests.peak.tokens, facts.requests.peak.step)
    assert side.facts.instructions == side.facts.held + side.facts.lost + side.facts.unknown
    assert (replayed.name, replayed.policy, len(replayed.digest)) == ("replayed", "codex", 64)
    assert max(side.series.tokens) == side.outcome.peak


@pytest.mark.parametrize(
    ("agent", "format_", "named"),
    [
        ("plan", "opencode", "OpenCode (plan)"),
        ("OpenCode", "opencode", "OpenCode"),
        ("Kilo Code", "opencode", "Kilo Code"),
        ("", "opencode", ""),
        ("plan", "native", "plan"),
    ],
)
def test_its_head_names_the_program_and_not_its_mode_alone(recording, agent, format_, named):
    written = msgspec.structs.replace(recording, agent=agent, format=format_)
    report = build(written, ReportOptions())
    assert report.session.agent == agent
    assert page(report).partition("Compaction report · ")[2].startswith(f"{named} · " if named else recording.model)
    sheets = extract(written, ReportOptions(), ReportPart("decision", 1))
    assert f" · {named}" in sheets.about


def test_a_session_that_was_only_simulated_is_reported_by_its_replay():
    one = build(bundled("timing-gap"), ReportOptions())
    assert {side.name for side in one.sides} <= {"recorded", "replayed"}
    assert one.sides[0].compactions


def test_a_negative_number_has_the_minus_sign_of_the_formulas(report):
    item = next(item for item in report.sides[0].compactions if item.bridge is not None)
    parts = (msgspec.structs.replace(item.bridge.parts[0], unexplained=-8_464), *item.bridge.parts[1:])
    bridge = msgspec.structs.replace(item.bridge, parts=parts)
    side = msgspec.structs.replace(report.sides[0], compactions=(msgspec.structs.replace(item, bridge=bridge),))
    text = Elements(page(msgspec.structs.replace(report, sides=(side,)))).text
    assert "−8,464" in text
    assert "-8,464" not in text


@pytest.mark.parametrize("level", ["numbers", "names", "text"])
def test_what_was_written_is_verified_against_its_recording(level):
    recording = bundled("small-window")
    one = build(recording, ReportOptions(level=level))
    again = decode(encode(one))
    assert again == one
    assert verify(again) == verify(again, [recording]) == []


def test_every_changed_figure_is_noticed():
    recording = bundled("small-window")
    one = build(recording, ReportOptions())
    peak = msgspec.structs.replace(one.sides[0].outcome, peak=one.sides[0].outcome.peak + 1)
    forged = sealed(msgspec.structs.replace(one, sides=(msgspec.structs.replace(one.sides[0], outcome=peak),)))
    assert verify(forged) == []  # a digest alone proves nothing
    assert [item.place for item in verify(forged, [recording])] == ["sides.0.outcome.peak"]
    unsealed = msgspec.structs.replace(forged, digest=one.digest)
    assert [item.place for item in verify(unsealed)] == ["digest"]
    assert [item.place for item in verify(one, [bundled("healthy")])] == ["session.digest"]


def of_another_engine(report, **changed):
    """A document as an earlier version wrote it: other sentences, an optional field less, and one that is no more."""
    values = msgspec.to_builtins(report) | {"engine_version": "0.1.0", "mood": "calm"} | changed
    del values["sides"][0]["verdict"]["steps"]
    values["sides"][0]["verdict"]["sentence"] = "All was well in those days."
    values["assumptions"] = ["Something was assumed.", *values["assumptions"]]
    data = msgspec.json.encode(values)
    return msgspec.json.encode(values | {"digest": digest_of(data)})


def test_of_a_report_by_another_engine_only_what_both_versions_compute_is_compared():
    recording = bundled("small-window")
    one = build(recording, ReportOptions())
    report = of_another_engine(one)
    assert verify_document(report) == ([], "0.1.0")
    assert verify_document(report, [recording]) == ([], "0.1.0")
    values = msgspec.json.decode(report)
    values["sides"][0]["outcome"]["peak"] += 1
    places = [item.place for item in verify_document(msgspec.json.encode(values), [recording]).differences]
    assert places == ["digest", "sides.0.outcome.peak"]
    reread = msgspec.json.decode(report)
    reread["session"]["digest"] = "0" * 64
    places = [item.place for item in verify_document(msgspec.json.encode(reread), [recording]).differences]
    assert places == ["digest", "session.digest"]


def test_a_bridge_that_does_not_add_up_is_noticed(report):
    values = msgspec.to_builtins(report)
    values["sides"][0]["compactions"][1]["bridge"]["parts"][0]["removed"] += 7
    forged = sealed(msgspec.convert(values, type(report)))
    assert [item.place for item in verify(forged)] == ["sides.recorded.compactions.1.bridge.fixed.after"]


def test_lower_levels_hold_no_words_of_the_session(recording, plain):
    wanted = ("Fill the column", "orchard/", "tenants", "read_file")
    names, numbers = (encode(build(recording, ReportOptions(level=level))).decode() for level in ("names", "numbers"))
    text, tool = encode(plain).decode(), plain.session.tools[0][0]
    assert plain.level == "text"
    assert all(words in text for words in wanted[:2])
    assert not [words for words in wanted[:3] if words in names]
    assert tool in names
    assert recording.title in names
    assert not [words for words in (*wanted[:3], f'"{tool}"', recording.title) if words in numbers]
    assert "left the context at step 38" in numbers


def test_of_a_sentence_only_the_quotations_are_withheld(plain):
    """Also where it has two, and where a quotation holds quotation marks; what else is quoted is not known."""
    template = plain.sides[0].findings[0]

    def withheld(sentence, **numbers):
        claim = msgspec.structs.replace(template, sentence=sentence, numbers=numbers)
        side = msgspec.structs.replace(plain.sides[0], findings=(claim,))
        return at_level(msgspec.structs.replace(plain, sides=(side,)), "names").sides[0].findings[0].sentence

    told = 'Your request "Say "no" …" left at step 7. The summary quotes these words of it: "Never \\1".'
    without = 'Your request "…" left at step 7. The summary quotes these words of it: "…".'
    assert withheld(told, quote='Say "no" to it', passage="Never \\1", step=6) == without
    assert withheld('It says "x" at 7: "y".', quote="x") == 'It says "…".'


def test_chosen_compactions_are_shown_in_full(recording):
    one = build(recording, ReportOptions(chosen=(2,)))
    assert [item.bridge is not None for item in one.sides[0].compactions] == [False, False, True]
    with pytest.raises(SettingError, match="no compaction 9"):
        build(recording, ReportOptions(chosen=(8,)))


def test_the_chart_says_the_count_of_each_request_and_leads_to_each_compaction(plain):
    side, html = plain.sides[0], page(plain)
    for item in side.compactions:
        assert f'href="#compaction-recorded-{item.index + 1}"' in html
        assert f'id="compaction-recorded-{item.index + 1}"' in html
    labels = re.findall(r"step (\d+): ([\d,]+) tokens, (recorded|modelled), ([\d.]+) % of the window", html)
    assert 0 < len(labels) <= 240
    counts = dict(zip(side.series.steps, side.series.tokens, strict=True))
    for step, count, source, share in labels:
        tokens = counts[int(step) - 1]
        assert (count, share) == (f"{tokens:,}", f"{100 * tokens / plain.window.value:.1f}")
        assert (source == "modelled") == side.series.modelled[side.series.steps.index(int(step) - 1)]
    assert f"{max(side.series.tokens):,}" in {count for _, count, _, _ in labels}  # however many are drawn


def test_a_request_that_was_never_counted_is_not_called_recorded(plain):
    for item in plain.sides[0].compactions:
        grown = sum(part.grown for part in item.bridge.parts)
        counted = sum(part.before for part in item.bridge.parts)
        assert grown > 0
        assert (item.before, item.before_source) == (counted + grown, "modelled")
        assert item.bridge.before_source == "provider"


def test_hostile_text_stays_text_in_every_form(recording):
    one = build(with_hostile_words(recording), ReportOptions())
    one = sealed(msgspec.structs.replace(one, title=HOSTILE, remarks=(Remark(-1, HOSTILE), Remark(37, HOSTILE))))
    html = page(one)
    elements = Elements(html)
    assert not elements.names & {"script", "img", "iframe", "link", "object", "form", "base"}
    assert not [name for name, value in elements.attributes if name.startswith("on") or name in ("src", "style")]
    assert {value for name, value in elements.attributes if name == "href"} <= {
        f"#{value}" for name, value in elements.attributes if name == "id"
    }
    assert "alert(1)" in "".join(elements.text)
    assert "\u202e" not in html
    assert "\x1b" not in html
    assert "\\u202e" in html
    text = markdown(one)
    assert "<script" not in text
    assert "](" not in text
    assert "@everyone" not in text
    assert "://" not in text
    assert "<script" not in badge(one)
    rows = list(csv.reader(io.StringIO(sheet(one))))
    assert {len(row) for row in rows} == {len(rows[0])}
    assert len(rows) == 4
    assert json.loads(encode(one))["title"] == HOSTILE


def test_no_cell_of_a_sheet_begins_a_formula(plain):
    for sign in ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", " =", "-1+cmd"):
        item = msgspec.structs.replace(plain.sides[0].compactions[0], reason=f"{sign}1+1")
        side = msgspec.structs.replace(plain.sides[0], compactions=(item,))
        row = next(iter(csv.DictReader(io.StringIO(sheet(msgspec.structs.replace(plain, sides=(side,)))))))
        assert row["reason"] == f"'{sign}1+1"
        assert row["step"] == "38"


def test_what_is_no_report_is_refused_in_a_sentence(report):
    good = json.loads(encode(report))
    for bad, words in (
        (b"{", "not a report"),
        (b"[]", "not a report"),
        (b"\xff", "not a report"),
        (b"<!doctype html>", "this is HTML; a report is read as JSON"),
        (b"[" * 100_000, "not a report"),
        (json.dumps({**good, "schema": "other"}).encode(), "its schema"),
        (json.dumps({**good, "version": 99}).encode(), "version 99"),
        (json.dumps({**good, "sides": 1}).encode(), "not a report"),
    ):
        with pytest.raises(GuardError, match=words):
            decode(bad)


def test_a_session_without_calls_or_compactions_has_a_report():
    for one in (session(), session(user("Hello"), model("Hello."))):
        report = build(one, ReportOptions(policy="codex"))
        assert "<h1>" in page(report)
        assert markdown(report)
        assert badge(report)
        assert verify(report, [one]) == []


def test_the_share_that_a_compaction_left_names_its_source_where_the_provider_did_not_count_the_request():
    counted = build(bundled("long-coding"), ReportOptions()).sides[0].compactions[0]
    assert compaction_row(counted)[5].endswith(" %")
    assert compaction_row(msgspec.structs.replace(counted, after_source="modelled"))[5].endswith(" % (modelled)")
    modelled = msgspec.structs.replace(counted, before=155_537, before_source="modelled")
    assert compaction_row(modelled)[3] == "155,537 (modelled)"
    assert compaction_row(msgspec.structs.replace(modelled, before_source="provider"))[3] == "155,537"


def test_an_unknown_price_has_no_source():
    report = build(msgspec.structs.replace(bundled("long-coding"), model="nameless"), ReportOptions())
    side = report.sides[0]
    unknown = msgspec.structs.replace(side.outcome, costs=msgspec.structs.replace(side.outcome.costs, total=None))
    rows = figures(report, msgspec.structs.replace(side, outcome=unknown))
    assert ("cost", "price unknown", "") in rows


def test_a_report_says_what_is_cut_on_paper(recording):
    words = "On paper summaries end after 62 mm. The report itself has all of it."
    assert words in page(build(recording, ReportOptions(level="text")))
    plain = build(recording, ReportOptions(level="numbers"))
    assert "On paper" not in page(plain)
    side = plain.sides[0]
    many = msgspec.structs.replace(side, compactions=side.compactions[:1] * 61)
    assert "On paper lists end after 60 compactions." in page(msgspec.structs.replace(plain, sides=(many,)))


def test_counts_of_characters_are_called_so_beside_each_of_them():
    one = build(in_characters(), ReportOptions(policy="contextguard", window=20_000))
    assert one.sides[0].outcome.peak_source == "recorded, perhaps characters"
    assert any("seem to count characters, not tokens" in sentence for sentence in one.assumptions)
    rows = list(csv.DictReader(io.StringIO(sheet(one))))
    assert rows
    assert {row["before_source"].rpartition(", ")[2] for row in rows} == {"perhaps characters"}


def test_what_a_compaction_removed_unseen_is_counted_as_the_least():
    """The file has the whole log behind it: it does not say what the compaction took away."""
    question = user("Summarise the log")
    blind = RecordedCompaction(3, Evidence.MATCHED, "summary", (Span(0, 3), Inserted(0)), (user("So far."),))
    calls = tuple(ModelCall(at, at) for at in (1, 3, 5))
    events = (question, model("a"), question, model("b"), question, model("c"))
    document = build(session(*events, calls=calls, compactions=(blind,)), ReportOptions(window=9_000))
    rows = {name: value for name, value, _ in figures(document, document.sides[0])}
    assert document.sides[0].outcome.is_least
    assert rows["users' requests no longer held"] == "at least 0 of 3"
    assert compaction_row(document.sides[0].compactions[0])[-1] == "–"
    shown = " ".join("".join(Elements(page(document)).text).split())
    assert "nothing to compare" not in shown
    assert "Context window 9,000 tokens (user: chosen for this report)." in shown


def test_a_window_that_is_assumed_is_called_so_once():
    document = build(msgspec.structs.replace(session(user("hello"), model("a")), window=None), ReportOptions())
    assert "tokens (assumed: neither the file nor the model table has it)." in page(document)
