"""Tokenizer counts of texts, and what estimators make of a session."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0005_first_look"),
    ]

    operations = [
        migrations.CreateModel(
            name="TextCount",
            fields=[
                ("sha256", models.BinaryField(max_length=32, primary_key=True, serialize=False)),
                ("o200k", models.IntegerField()),
                ("cl100k", models.IntegerField()),
                ("chars4", models.IntegerField()),
                ("bytes4", models.IntegerField()),
            ],
        ),
        migrations.CreateModel(
            name="Estimate",
            fields=[
                (
                    "session",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="estimate",
                        serialize=False,
                        to="inspector.session",
                    ),
                ),
                ("revision", models.IntegerField()),
                ("counted", models.IntegerField(default=0)),
                ("tokenizer", models.BinaryField(null=True)),
                ("result", models.BinaryField(null=True)),
            ],
        ),
    ]
