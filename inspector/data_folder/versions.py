"""Which versions of the program a database has seen."""

from __future__ import annotations

from collections.abc import Iterable

from django.apps import apps
from django.db import connection
from django.db.migrations.executor import MigrationExecutor
from django.db.migrations.loader import MigrationLoader

from guard_core import __version__
from inspector.data_folder.owner import CommandRefused


def refuse_newer(what: object, applied: Iterable[tuple[str, str]]) -> None:
    """Raise CommandRefused where a database has seen migrations (app, name) that this version does not know."""
    known = set(MigrationLoader(None).disk_migrations)
    labels = {config.label for config in apps.get_app_configs()}
    newer = sorted(name for app, name in applied if app in labels and (app, name) not in known)
    if newer:
        raise CommandRefused(
            f"{what} is of a newer version of this program: its database has seen {newer[-1]}, which this version, "
            f"{__version__}, does not know. Nothing was changed. Update the program."
        )


def is_outdated() -> bool:
    """Has this version migrations that the database has not seen."""
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))
