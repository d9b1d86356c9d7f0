"""Verdicts, findings and peaks on the session list, and context windows that people state for models."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F


def take_recorded_peaks(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Until a job has assessed a session, its peak is the largest recorded prompt."""
    sessions = apps.get_model("inspector", "Session").objects.using(schema_editor.connection.alias)
    sessions.filter(prompt_tokens_max__gt=0).update(peak_tokens=F("prompt_tokens_max"), peak_source="recorded")


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0010_source_id"),
    ]

    operations = [
        migrations.CreateModel(
            name="ModelWindow",
            fields=[
                ("model", models.CharField(max_length=200, primary_key=True, serialize=False)),
                ("window", models.BigIntegerField()),
            ],
        ),
        migrations.AddField(
            model_name="session",
            name="assessed_by",
            field=models.CharField(blank=True, default="", max_length=40),
        ),
        migrations.AddField(
            model_name="session",
            name="assessed_window",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="session",
            name="kinds",
            field=models.CharField(blank=True, default="", max_length=1000),
        ),
        migrations.AddField(
            model_name="session",
            name="model_window",
            field=models.BigIntegerField(null=True),
        ),
        migrations.AddField(
            model_name="session",
            name="peak_source",
            field=models.CharField(blank=True, default="", max_length=10),
        ),
        migrations.AddField(
            model_name="session",
            name="peak_tokens",
            field=models.BigIntegerField(default=0),
        ),
        migrations.AddField(
            model_name="session",
            name="severity",
            field=models.SmallIntegerField(
                choices=[(0, "Error"), (1, "Warning"), (2, "Fine"), (3, "Unjudged")], default=3
            ),
        ),
        migrations.AddField(
            model_name="session",
            name="verdict",
            field=models.CharField(blank=True, default="", max_length=400),
        ),
        migrations.AddField(
            model_name="session",
            name="verdict_kind",
            field=models.CharField(blank=True, default="", max_length=40),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("deleted", None)), fields=["severity", "-created", "ordinal"], name="session_worst"
            ),
        ),
        migrations.RunPython(take_recorded_peaks, migrations.RunPython.noop, elidable=True),
    ]
