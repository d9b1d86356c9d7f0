"""Deleting a text no longer scans all events for its name."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0008_quiet_index"),
    ]

    operations = [
        migrations.AlterField(
            model_name="event",
            name="payload",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="inspector.payload",
            ),
        ),
    ]
