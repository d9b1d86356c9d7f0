"""What the rule of its agent says of a session is computed when it is stored or assessed, and read by pages."""

from __future__ import annotations

import pytest

from guard_core.findings import Facts
from guard_core.packing import encode
from guard_core.recordings.formats import native
from guard_core.rules import explain
from inspector.ingest.importing import run_import
from inspector.ingest.submitting import submit
from inspector.ingest.uploads import receive
from inspector.models import Project, RuleExplanation, RuleSetting, Session, default_project
from inspector.storage import explanations
from inspector.storage.assessment import assess, assessment
from inspector.storage.compression import compressed
from tests.builders import transcript


@pytest.fixture
def imported(db, folders) -> Session:
    job = submit(default_project(), receive([native.write(transcript())], "made.jsonl"))
    run_import(str(job.pk))
    return Session.objects.of(default_project()).get()


def type_in(name: str, value: str, project: Project | None = None) -> None:
    owner = project or default_project()
    RuleSetting.objects.of(owner).create(agent="Claude Code", name=name, value=value)


def planted(row: Session) -> None:
    """Change what is stored, so that a test sees where an explanation comes from."""
    other = explain(transcript(prompts=(20_000, 140_000, 120_000, 30_000)))
    explanations.store(row, transcript(), other)


def test_an_import_stores_what_the_rule_says_of_the_session(imported):
    assert RuleExplanation.objects.in_session(imported).get().revision == imported.revision
    assert explanations.load(imported) == explain(transcript())


def test_what_is_stored_is_not_computed_again(imported):
    planted(imported)
    assert explanations.load(imported).agrees == 0


def test_another_window_is_another_explanation(imported):
    planted(imported)
    imported.window_override = 1_000_000
    assert explanations.load(imported).rule.threshold == 955_000


def test_a_setting_that_was_typed_in_is_used(imported):
    planted(imported)
    type_in("max_output_tokens", "8192")
    assert explanations.load(imported).rule.threshold == 178_808
    assess(imported)
    assert explanations.load(imported).rule.threshold == 178_808


def test_a_setting_of_another_project_or_one_that_cannot_be_read_is_not(imported):
    type_in("max_output_tokens", "8192", Project.objects.create(slug="other", name="Other"))
    type_in("auto_compact_window", "a lot")
    type_in("no_such_setting", "1")
    assert explanations.load(imported).rule.threshold == 155_000


def test_a_session_that_has_grown_is_explained_anew(imported):
    planted(imported)
    Session.objects.row(imported).update(revision=imported.revision + 1)
    imported.refresh_from_db()
    assert explanations.load(imported).agrees == 1


def test_what_cannot_be_read_any_more_is_computed(imported):
    RuleExplanation.objects.in_session(imported).update(body=compressed(encode({})))
    assert explanations.load(imported).agrees == 1


@pytest.mark.parametrize(
    ("format_", "version", "known"),
    [
        ("claude-code", "2.1.14", (155_000, "rule")),
        ("claude-code", "2.1.62", (155_010, "inferred")),
        ("claude-code", "2.1.330", (155_010, "inferred")),
        ("homemade", "", (154_000, "inferred")),
    ],
)
def test_the_list_has_the_threshold_of_the_rule_or_what_is_inferred(format_, version, known):
    columns = assessment(Facts.of(transcript(format_, version)))
    assert (columns["threshold"], columns["threshold_source"]) == known
