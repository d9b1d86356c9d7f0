"""The Django application."""

from django.apps import AppConfig


class InspectorConfig(AppConfig):
    name = "inspector"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from inspector import checks  # noqa: F401 - registers the system checks
