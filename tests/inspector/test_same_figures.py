"""One truth: what command, report, list, API and pages say of a session are the same figures and sentences."""

import csv
import html
import io
import json
import re
from contextlib import redirect_stdout

import pytest
from django.db import transaction

from guard_core.__main__ import main
from guard_core.recordings import read
from guard_core.recordings.formats import native
from guard_core.report import ReportOptions, badge, build, markdown, page, sheet
from guard_core.report.words import main_side
from guard_core.rules import explain
from guard_core.simulator.samples import SAMPLES
from inspector.beside.statusline import status_line
from inspector.models import Session, default_project
from tests.builders import OPUS, bundled
from tests.guard_core.checker.cases import clearing, recordings
from tests.inspector.conftest import PageClient, imported

pytestmark = pytest.mark.django_db
CASES = {
    **{name: lambda name=name: bundled(name) for name in SAMPLES},
    "clearing": clearing,
    **{
        name: lambda name=name: dict(recordings())[name]
        for name in ("sealed", "empty", "truncated", "at the end", "kept tail", "refused")
    },
}


# The samples are longer than the other cases, and have no other columns and pages: a database adds nothing to them, and
# in `make test` there is one of them.
MORE_SAMPLES = set(SAMPLES) - {"small-window"}


@pytest.fixture(
    params=[
        pytest.param(name, marks=[pytest.mark.once, pytest.mark.long] if name in MORE_SAMPLES else []) for name in CASES
    ],
    scope="module",
)
def places(request, handler, shared_rows, tmp_path_factory):
    """What each place says of one session."""
    built = CASES[request.param]()
    path = tmp_path_factory.mktemp("recording") / "session.jsonl"
    path.write_bytes(native.write(built))
    client = PageClient(handler)

    def command(*arguments):
        output = io.StringIO()
        with redirect_stdout(output):
            assert main([*arguments]) == 0
        return output.getvalue()

    with shared_rows(), transaction.atomic():
        imported(native.write(built))
        (row,) = Session.objects.of(default_project())
        address = row.get_absolute_url()
        (verdict,) = json.loads(command("verdict", str(path), "--json"))["sessions"]
        (facts,) = json.loads(command("facts", str(path), "--json"))["sessions"]
        api = f"/api/v1/sessions/{row.pk}"
        shown = {
            "row": row,
            "verdict": verdict,
            "verdict text": command("verdict", str(path)),
            "facts command": facts["sentence"],
            "report": build(built, ReportOptions(level="text")),
            "api row": client.get(api).json(),
            "api findings": client.get(f"{api}/findings").json(),
            "api compactions": client.get(f"{api}/compactions").json()["compactions"],
            **{name: shown_by(client.get(address + name)) for name in ("", "facts")},
            "list": shown_by(client.get("/")),
        }
        transaction.set_rollback(True)
    return shown


def shown_by(response):
    assert response.status_code == 200
    return text_of(response.content.decode())


def sheet_of(response):
    assert response.status_code == 200
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def text_of(document):
    return " ".join(html.unescape(re.sub("<[^>]+>", " ", document)).split())


def test_the_verdict_is_one_sentence_everywhere(places):
    sentence = places["verdict"]["verdict"]["sentence"]
    report = places["report"]
    assert sentence == places["api findings"]["verdict"]["sentence"] == main_side(report).verdict.sentence
    assert sentence == places["row"].verdict == places["api row"]["verdict"]
    texts = (places["verdict text"], places[""], places["list"], text_of(page(report)))
    assert [sentence in text for text in texts] == [True] * len(texts)


def test_findings_are_the_same_everywhere(places):
    sentences = [item["sentence"] for item in places["verdict"]["findings"]]
    assert sentences == [item["sentence"] for item in places["api findings"]["findings"]]
    assert sentences == [item.sentence for item in main_side(places["report"]).findings]
    assert [sentence for sentence in sentences if sentence not in places[""]] == []


def test_counts_and_peak_are_the_same_everywhere(places):
    report, row = places["report"], places["row"]
    outcome = main_side(report).outcome
    assert outcome.compactions == places["verdict"]["compactions"]["total"] == row.compactions
    assert row.compactions == places["api row"]["compactions"] == len(places["api compactions"])
    assert (outcome.peak, outcome.peak_source) == (row.peak_tokens, row.peak_source)
    assert (outcome.peak, outcome.peak_source) == tuple(
        places["api row"][name] for name in ("peak_tokens", "peak_source")
    )
    assert places["api row"]["peak_window"] == row.peak_window
    peak = places["verdict"]["peak"]
    assert (outcome.peak, outcome.peak_step) == (peak["tokens"], peak["step"])
    assert outcome.overflows == row.overflows
    word = "compaction" if outcome.compactions == 1 else "compactions"
    assert f"{outcome.compactions:,} {word}, {outcome.overflows:,} overflow" in badge(report)
    assert f"{outcome.peak:,}" in places[""]
    assert f"{outcome.peak:,}" in markdown(report)


def test_what_was_lost_is_the_same_everywhere(places):
    sentence = main_side(places["report"]).facts.sentence
    assert sentence == places["facts command"]
    assert sentence in places["facts"]


def test_a_sheet_of_the_report_has_the_compactions_of_the_other_places(places):
    report = places["report"]
    rows = list(csv.DictReader(io.StringIO(sheet(report))))
    own = [row for row in rows if row["side"] == main_side(report).name]
    listed = places["api compactions"]
    assert len(own) == len(listed) == places["row"].compactions
    for row, item in zip(own, listed, strict=True):
        assert row["trigger"] == item["trigger"]
        assert row["step"] == ("" if item["step"] < 0 else str(item["step"] + 1))


def test_the_sheet_of_policies_begins_with_the_figures_of_the_recording(client, bring):
    built = dict(recordings())["refused"]
    bring(native.write(built))
    (row,) = Session.objects.of(default_project())
    first = sheet_of(client.get(f"{row.get_absolute_url()}policies?format=csv"))[0]
    outcome = main_side(build(built, ReportOptions(level="text"))).outcome
    assert first["policy"] == "recording"
    assert [first[name] for name in ("compactions", "overflows", "near", "peak")] == [
        str(getattr(outcome, name)) for name in ("compactions", "overflows", "near_misses", "peak")
    ]
    assert outcome.overflows == row.overflows > 0


def test_the_status_line_says_what_the_rule_and_the_page_of_a_growing_session_say(client, bring, tmp_path):
    """Of a running session of Claude Code: the threshold of its version, the last count, and the calls left."""
    counts = [100_000, 103_000, 105_500, 109_000, 111_000, 114_500]
    lines = [claude_line("user", 0, {"role": "user", "content": "Fix it"})]
    for number, count in enumerate(counts, 1):
        usage = {"input_tokens": 10, "cache_read_input_tokens": count - 60, "output_tokens": 50}
        said = {"id": f"msg_{number}", "role": "assistant", "model": OPUS, "usage": usage}
        lines.append(claude_line("assistant", number, {**said, "content": [{"type": "text", "text": "x"}]}))
    path = tmp_path / "session.jsonl"
    path.write_text("".join(lines))
    bring(path.read_bytes())
    (row,) = Session.objects.of(default_project())
    context = {"context_window_size": 200_000, "current_usage": {"input_tokens": 114_450, "output_tokens": 50}}
    status = {"version": "2.1.14", "model": {"id": OPUS}, "context_window": context, "transcript_path": str(path)}
    line = status_line(json.dumps(status).encode(), {})
    rule = explain(read(path).sessions[0]).rule
    assert f"compacts at {rule.threshold:,} = {rule.formula}" in line
    assert (row.threshold, row.threshold_source) == (rule.threshold, "rule")
    left = client.get(f"{row.get_absolute_url()}growth", {"known": 0}).json()["left"]
    assert line.endswith(left)
    assert "calls left" in left


def test_the_list_of_running_agents_says_how_far_the_count_is_from_the_threshold_that_the_rule_compares(client, bring):
    """Claude Code compares prompt and output: an answer of 4,000 tokens takes as much room as it has."""
    lines = [claude_line("user", 0, {"role": "user", "content": "Fix it"})]
    usage = {"input_tokens": 110_000, "output_tokens": 4_000}
    said = {"id": "msg_1", "role": "assistant", "model": OPUS, "usage": usage}
    lines.append(claude_line("assistant", 1, {**said, "content": [{"type": "text", "text": "x"}]}))
    bring("".join(lines).encode())
    lines.append(claude_line("user", 2, {"role": "user", "content": "Go on"}))
    bring("".join(lines).encode())
    (row,) = Session.objects.of(default_project())
    page = client.get("/running/").text
    assert "110,000 of 200,000" in page
    assert f'data-label="To threshold">{row.threshold - 114_000:,}' in page


def claude_line(kind, number, message):
    """One line of a transcript."""
    about = {"uuid": f"u{number}", "parentUuid": f"u{number - 1}" if number else None, "sessionId": "s"}
    moment = f"2026-01-05T10:00:{number:02d}.000Z"
    line = {**about, "type": kind, "version": "2.1.14", "timestamp": moment, "message": message, "isSidechain": False}
    return f"{json.dumps(line)}\n"
