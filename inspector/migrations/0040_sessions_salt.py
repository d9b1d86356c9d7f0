from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("inspector", "0039_session_content"),
    ]

    operations = [
        migrations.AddField(
            model_name="account",
            name="sessions_salt",
            field=models.CharField(blank=True, default="", max_length=32),
        ),
    ]
