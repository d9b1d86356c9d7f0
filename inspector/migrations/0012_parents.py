"""A session knows which one started it, where its recording says so; those that are here already do when they come
again."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0011_verdicts"),
    ]

    operations = [
        migrations.AddField(
            model_name="session",
            name="parent_source",
            field=models.CharField(blank=True, default="", max_length=200),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                fields=["parent_source"],
                condition=models.Q(("parent_source", ""), _negated=True),
                name="session_parent",
            ),
        ),
    ]
