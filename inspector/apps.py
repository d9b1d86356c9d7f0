"""The Django application."""

from typing import Any

from django.apps import AppConfig
from django.db.backends.signals import connection_created
from django.db.models.signals import post_migrate

# PostgreSQL looks for a client that is gone in the middle of a statement, and for a machine that is, only when it is
# told to: until then it keeps what that client has locked. Milliseconds, seconds, seconds, probes.
NOTICE_THE_DEAD = {
    "client_connection_check_interval": 2_000,
    "tcp_keepalives_idle": 5,
    "tcp_keepalives_interval": 3,
    "tcp_keepalives_count": 3,
}


class InspectorConfig(AppConfig):
    """The Django application, which registers its system checks when it is ready."""

    name = "inspector"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from inspector.project import checks  # noqa: F401 - registers the system checks

        connection_created.connect(_notice_the_dead)
        post_migrate.connect(_make_default_project, sender=self)


def _notice_the_dead(connection: Any, **_: Any) -> None:
    """Every new connection is to have these settings, which end with it."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("; ".join(f"SET {name} = {value}" for name, value in NOTICE_THE_DEAD.items()))


def _make_default_project(using: str, apps: Any = None, **_: Any) -> None:
    """It is there from the beginning, and again where a database was emptied."""
    from inspector.models.projects import DEFAULT_NAME, DEFAULT_SLUG, Project  # models exist once all apps are loaded

    if apps is None or "project" in apps.all_models["inspector"]:  # else an older version has the database again
        model = Project if apps is None else apps.get_model("inspector", "project")  # with the columns that it has then
        model._base_manager.using(using).get_or_create(slug=DEFAULT_SLUG, defaults={"name": DEFAULT_NAME})
