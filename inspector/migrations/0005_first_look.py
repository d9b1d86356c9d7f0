"""A chart to look at while a large file is read."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0004_text_index"),
    ]

    operations = [
        migrations.AddField(
            model_name="import",
            name="first_look",
            field=models.TextField(blank=True, default=""),
        ),
    ]
