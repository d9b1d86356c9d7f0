"""Results measured before forecasts were made are dropped, so that a job measures them again."""

from typing import Any

from django.db import migrations


def forget_results(apps: Any, schema_editor: Any) -> None:
    estimates = apps.get_model("inspector", "Estimate").objects.using(schema_editor.connection.alias)
    estimates.update(result=None)


class Migration(migrations.Migration):
    dependencies = [("inspector", "0014_summaries")]
    operations = [migrations.RunPython(forget_results, migrations.RunPython.noop)]
