from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0041_places_of_spans"),
    ]

    operations = [
        migrations.AddField(
            model_name="sweep",
            name="deleted",
            field=models.DateTimeField(null=True),
        ),
    ]
