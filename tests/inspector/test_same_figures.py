"""One truth: what command, report, list, API and pages say of a session are the same figures and sentences."""

import html
import io
import json
import re
from contextlib import redirect_stdout

import pytest
from django.db import transaction

from guard_core.__main__ import main
from guard_core.recordings.formats import native
from guard_core.report import Options, badge, build, markdown, page
from guard_core.report.words import main_side
from guard_core.simulator.samples import SAMPLES
from inspector.models import Session, default_project
from tests.builders import bundled
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


# The samples are longer than the other cases, and have no other columns and pages: a database adds nothing to them.
ON_ONE_DATABASE = set(SAMPLES) - {"small-window"}


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.once] if name in ON_ONE_DATABASE else []) for name in CASES],
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
            "report": build(built, Options(level="text")),
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
