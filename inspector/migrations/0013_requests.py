"""Where the words of users' requests are: looked up in a job for sessions that are here already."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("inspector", "0012_parents")]

    operations = [
        migrations.AddField(model_name="session", name="requests", field=models.BinaryField(null=True)),
    ]
