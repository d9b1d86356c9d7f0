"""What recorded compactions inserted becomes searchable; sessions that are here already follow in a job."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0013_requests"),
    ]

    operations = [
        migrations.CreateModel(
            name="SummaryText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("compaction", models.IntegerField()),
                ("message", models.IntegerField()),
                ("words", models.TextField()),
                (
                    "session",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="summaries", to="inspector.session"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("session", "compaction", "message"), name="one_text_per_inserted_message"
                    )
                ],
            },
        ),
    ]
