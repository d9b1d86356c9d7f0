"""Rows of earlier versions after an upgrade, and after the way back."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from django.db import IntegrityError, connection, connections, transaction
from django.db.migrations.exceptions import IrreversibleError
from django.db.migrations.executor import MigrationExecutor

SCRATCH = "scratch"
BEFORE, AFTER = ("inspector", "0016_deleted_index"), ("inspector", "0017_projects")


@pytest.fixture
def scratch(tmp_path: Path, django_db_blocker: Any) -> Iterator[Any]:
    """A database of its own, empty, of the kind in use."""
    with django_db_blocker.unblock():
        yield from created(tmp_path)


def created(tmp_path: Path) -> Iterator[Any]:
    name = f"inspector_scratch_{uuid4().hex[:12]}"
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
    settings = {**connection.settings_dict, "NAME": name if connection.vendor == "postgresql" else tmp_path / "db"}
    connections.settings[SCRATCH] = settings
    try:
        yield connections[SCRATCH]
    finally:
        connections[SCRATCH].close()
        del connections[SCRATCH]
        del connections.settings[SCRATCH]
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute(f"DROP DATABASE {name} WITH (FORCE)")


def migrate(database: Any, target: tuple[str, str]) -> Any:
    """The models as they are then: name -> rows."""
    executor = MigrationExecutor(database)
    apps = executor.migrate([target]).apps
    return lambda name: apps.get_model("inspector", name)._base_manager.using(SCRATCH)


def fill(rows: Any) -> None:
    """One row of everything that an older version knew."""
    recording = rows("Recording").create(sha256="a" * 64, name="a.jsonl", size=1)
    rows("Import").create(recording=recording, name="a.jsonl")
    session = rows("Session").create(recording=recording, title="kept", format="pi", window=1, window_source="assumed")
    rows("Tag").create(name="kept").sessions.add(session)
    rows("GalleryRun").create(choice="none", engine="1")
    rows("ModelWindow").create(model="gpt", window=128_000)
    rows("TextCount").create(sha256=b"t" * 32, o200k=1, cl100k=2, chars4=3, bytes4=4)


def seen(rows: Any) -> dict[str, Any]:
    return {
        "recordings": list(rows("Recording").values_list("sha256", "wal_sha256")),
        "imports": list(rows("Import").values_list("name", flat=True)),
        "tags": list(rows("Tag").values_list("name", "sessions__title")),
        "runs": list(rows("GalleryRun").values_list("choice", flat=True)),
        "windows": list(rows("ModelWindow").values_list("model", "window")),
        "counts": [
            (bytes(key), *rest) for key, *rest in rows("TextCount").values_list("sha256", "o200k", "chars4", "bytes4")
        ],
    }


def test_every_row_of_an_older_version_belongs_to_the_default_project(scratch):
    rows = migrate(scratch, BEFORE)
    fill(rows)
    before = seen(rows)
    rows = migrate(scratch, AFTER)
    assert seen(rows) == before
    default = rows("Project").get(slug="default")
    for name in ("Recording", "Import", "Session", "Tag", "GalleryRun", "ModelWindow", "TextCount"):
        assert list(rows(name).values_list("project", flat=True)) == [default.pk]
    assert rows("Session").model._meta.get_field("project").null is False


def test_the_way_back_loses_nothing(scratch):
    rows = migrate(scratch, BEFORE)
    fill(rows)
    before = seen(rows)
    migrate(scratch, AFTER)
    rows = migrate(scratch, BEFORE)
    assert seen(rows) == before
    assert seen(migrate(scratch, AFTER)) == before


def test_there_is_no_way_back_for_several_projects(scratch):
    rows = migrate(scratch, AFTER)
    rows("Project").create(slug="other", name="Other")
    with pytest.raises(IrreversibleError, match="other"):
        migrate(scratch, BEFORE)


def test_names_and_bytes_are_unique_in_a_project_and_not_among_several(scratch):
    rows = migrate(scratch, AFTER)
    default, other = rows("Project").get(), rows("Project").create(slug="other", name="Other")
    for project in (default, other):
        rows("Recording").create(project=project, sha256="a" * 64, name="a.jsonl", size=1)
        rows("Tag").create(project=project, name="kept")
        rows("ModelWindow").create(project=project, model="gpt", window=1)
        rows("TextCount").create(project=project, sha256=b"t" * 32, o200k=1, cl100k=1, chars4=1, bytes4=1)
    for name, values in (
        ("Recording", {"sha256": "a" * 64, "name": "b.jsonl", "size": 1}),
        ("Tag", {"name": "kept"}),
        ("ModelWindow", {"model": "gpt", "window": 2}),
        ("TextCount", {"sha256": b"t" * 32, "o200k": 1, "cl100k": 1, "chars4": 1, "bytes4": 1}),
    ):
        with pytest.raises(IntegrityError), transaction.atomic(using=SCRATCH):
            rows(name).create(project=other, **values)
