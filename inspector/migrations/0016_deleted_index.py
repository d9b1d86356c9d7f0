"""The list comes in its order from an index, without one that only tells what is not deleted."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0015_measure_again"),
    ]

    operations = [
        migrations.AlterField(
            model_name="session",
            name="deleted",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="session",
            index=models.Index(
                condition=models.Q(("deleted__isnull", False)), fields=["deleted"], name="session_deleted"
            ),
        ),
    ]
