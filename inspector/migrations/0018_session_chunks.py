"""Sessions are stored in chunks. Those that an older version stored are read as before, until they grow or are counted
again."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0017_projects"),
    ]

    operations = [
        migrations.AddField(
            model_name="sessiondata",
            name="in_chunks",
            field=models.BooleanField(default=False),
        ),
        migrations.CreateModel(
            name="SessionChunk",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("kind", models.CharField(max_length=20)),
                ("number", models.IntegerField()),
                ("digest", models.BinaryField(max_length=32)),
                ("body", models.BinaryField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="chunks", to="inspector.session"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("session", "kind", "number"), name="one_chunk_per_place")
                ],
            },
        ),
    ]
