"""A database's write-ahead log is part of its recording; an import knows the folder that its file lay in."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0006_estimates"),
    ]

    operations = [
        migrations.AlterField(
            model_name="recording",
            name="sha256",
            field=models.CharField(max_length=64),
        ),
        migrations.AddField(
            model_name="recording",
            name="wal_sha256",
            field=models.CharField(blank=True, default="", max_length=64),
        ),
        migrations.AddConstraint(
            model_name="recording",
            constraint=models.UniqueConstraint(fields=("sha256", "wal_sha256"), name="one_recording_of_these_bytes"),
        ),
        migrations.AddField(
            model_name="import",
            name="folder",
            field=models.CharField(blank=True, default="", max_length=400),
        ),
    ]
