"""Everything belongs to a project: what is here already to the default one."""

from __future__ import annotations

from typing import Any

import django.db.models.deletion
from django.db import migrations, models
from django.db.migrations.exceptions import IrreversibleError

DEFAULT = 1  # primary key of the first row of a new table
OWNED = ("galleryrun", "import", "recording", "session", "tag")
COPIED = {  # tables whose primary key was the name or the hash that now is unique in a project
    "ModelWindow": ("model", '"window"'),
    "TextCount": ("sha256", "o200k", "cl100k", "chars4", "bytes4"),
}


def make_default(apps: Any, schema_editor: Any) -> None:
    """The project of local mode, which owns the rows that are here."""
    projects = apps.get_model("inspector", "Project").objects.using(schema_editor.connection.alias)
    made = projects.create(slug="default", name="Default")
    assert made.pk == DEFAULT


def refuse_to_merge(apps: Any, schema_editor: Any) -> None:
    """Without projects the rows of several would be mixed up."""
    projects = apps.get_model("inspector", "Project").objects.using(schema_editor.connection.alias)
    if others := list(projects.exclude(pk=DEFAULT).values_list("slug", flat=True)[:5]):
        raise IrreversibleError(f"delete these projects first, with all that is theirs: {', '.join(others)}")


def _tables(apps: Any, name: str) -> list[str]:
    return [apps.get_model("inspector", model)._meta.db_table for model in (f"Former{name}", name)]


def copy_forwards(apps: Any, schema_editor: Any) -> None:
    for name, columns in COPIED.items():
        former, table = _tables(apps, name)
        listed = ", ".join(columns)
        schema_editor.execute(
            f"INSERT INTO {table} (project_id, {listed}) SELECT {DEFAULT}, {listed} FROM {former} ORDER BY {columns[0]}"
        )


def copy_backwards(apps: Any, schema_editor: Any) -> None:
    for name, columns in COPIED.items():
        former, table = _tables(apps, name)
        listed = ", ".join(columns)
        schema_editor.execute(
            f"INSERT INTO {former} ({listed}) SELECT {listed} FROM {table} WHERE project_id = {DEFAULT}"
        )


def owner(**options: Any) -> models.ForeignKey[Any, Any]:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.PROTECT,
        related_name="+",
        to="inspector.project",
        **options,
    )


def number() -> models.BigAutoField[Any, Any]:
    return models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0016_deleted_index"),
    ]

    operations = [
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", number()),
                ("slug", models.SlugField(max_length=60, unique=True)),
                ("name", models.CharField(max_length=200)),
                ("created", models.DateTimeField(auto_now_add=True)),
            ],
        ),
        migrations.RunPython(make_default, migrations.RunPython.noop),
        migrations.RemoveConstraint(model_name="recording", name="one_recording_of_these_bytes"),
        migrations.RemoveIndex(model_name="galleryrun", name="inspector_g_choice_3ab8d9_idx"),
        migrations.RemoveIndex(model_name="session", name="session_list"),
        migrations.RemoveIndex(model_name="session", name="session_source"),
        migrations.RemoveIndex(model_name="session", name="session_worst"),
        migrations.RemoveIndex(model_name="session", name="session_parent"),
        migrations.AlterField(model_name="tag", name="name", field=models.CharField(max_length=40)),
        *(
            migrations.AddField(model_name=name, name="project", field=owner(default=DEFAULT), preserve_default=False)
            for name in OWNED
        ),
        migrations.AddIndex(
            model_name="galleryrun",
            index=models.Index(fields=["project", "choice", "engine", "state"], name="gallery_choice"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("deleted", None)), fields=["project", "-created", "ordinal"], name="session_list"
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("deleted", None)),
                fields=["project", "severity", "-created", "ordinal"],
                name="session_worst",
            ),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(fields=["project", "source_id"], name="session_source"),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("parent_source", ""), _negated=True),
                fields=["project", "parent_source"],
                name="session_parent",
            ),
        ),
        migrations.AddConstraint(
            model_name="recording",
            constraint=models.UniqueConstraint(
                fields=("sha256", "wal_sha256", "project"), name="one_recording_in_a_project"
            ),
        ),
        migrations.AddConstraint(
            model_name="tag",
            constraint=models.UniqueConstraint(fields=("project", "name"), name="one_tag_of_this_name"),
        ),
        migrations.RenameModel("ModelWindow", "FormerModelWindow"),
        migrations.RenameModel("TextCount", "FormerTextCount"),
        migrations.CreateModel(
            name="ModelWindow",
            fields=[
                ("id", number()),
                ("model", models.CharField(max_length=200)),
                ("window", models.BigIntegerField()),
                ("project", owner()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "model"), name="one_window_of_a_model"),
                ],
            },
        ),
        migrations.CreateModel(
            name="TextCount",
            fields=[
                ("id", number()),
                ("sha256", models.BinaryField(max_length=32)),
                ("o200k", models.IntegerField()),
                ("cl100k", models.IntegerField()),
                ("chars4", models.IntegerField()),
                ("bytes4", models.IntegerField()),
                ("project", owner()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "sha256"), name="one_count_of_a_text"),
                ],
            },
        ),
        migrations.RunPython(copy_forwards, copy_backwards),
        migrations.DeleteModel("FormerModelWindow"),
        migrations.DeleteModel("FormerTextCount"),
        migrations.RunPython(migrations.RunPython.noop, refuse_to_merge),
    ]
