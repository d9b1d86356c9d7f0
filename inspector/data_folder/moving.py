"""The move from SQLite to PostgreSQL: every row copied in one transaction, then both sides compared by digest."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import Any

from django.apps import apps
from django.core.management import call_command
from django.core.management.color import no_style
from django.db import connections, models, transaction

from inspector.models import Project
from inspector.models.projects import DEFAULT_SLUG
from inspector.project.settings import database

TARGET = "target"
CHUNK = 500  # rows; texts come with them


class MoveFailed(Exception):
    """The text is one sentence for a person; the target was left without any of our rows."""


def move(url: str, say: Callable[[str], object]) -> int:
    """Copy everything to the database at `url`; how many rows. Raises MoveFailed.

    SQLite's write lock is held meanwhile, so that nothing is added that would stay behind. Recordings lie in the data
    folder and stay where they are; the worker rebuilds the text index.
    """
    connections.settings[TARGET] = connections.configure_settings({"default": database(url)})["default"]
    try:
        call_command("migrate", database=TARGET, interactive=False, verbosity=0)
        with transaction.atomic(), transaction.atomic(using=TARGET):
            _refuse_if_used()
            count = sum(_copy(model, say) for model in _models())
            _compare()
            _number_on()
        return count
    finally:
        connections[TARGET].close()
        del connections[TARGET]
        del connections.settings[TARGET]


def _models() -> list[type[models.Model]]:
    return list(apps.get_app_config("inspector").get_models(include_auto_created=True))


def _refuse_if_used() -> None:
    rows = ((model, model._base_manager.using(TARGET)) for model in _models())
    checked = ((model, stored.exclude(slug=DEFAULT_SLUG) if model is Project else stored) for model, stored in rows)
    used = [model._meta.verbose_name_plural for model, stored in checked if stored.exists()]
    if used:
        raise MoveFailed(f"The target holds {used[0]} already; nothing was copied. Name an empty database.")
    Project.objects.using(TARGET).delete()  # the one that the migrations made; ours comes in its place


def _copy(model: type[models.Model], say: Callable[[str], object]) -> int:
    """All rows of a table. Foreign keys are checked at the end of the transaction, so the order does not matter."""
    fields = model._meta.concrete_fields
    quote = connections[TARGET].ops.quote_name
    columns = ", ".join(quote(field.column) for field in fields if field.column)
    count = 0
    statement = f"COPY {quote(model._meta.db_table)} ({columns}) FROM STDIN"
    with connections[TARGET].cursor() as cursor, cursor.cursor.copy(statement) as copy:
        for row in _rows(model, "default"):
            copy.write_row(row)
            count += 1
    say(f"{count:>9,}  {model._meta.verbose_name_plural}")
    return count


def _rows(model: type[models.Model], alias: str) -> Iterator[tuple[Any, ...]]:
    names = [field.attname for field in model._meta.concrete_fields]
    indexed = names.index("indexed") if "indexed" in names else -1
    rows = model._base_manager.using(alias).order_by("pk").values_list(*names)
    for row in rows.iterator(chunk_size=CHUNK):
        # the text index is not a table of a model, and the other database makes its own
        yield tuple(0 if place == indexed else value for place, value in enumerate(row))


def _compare() -> None:
    """Read both databases again. Raises MoveFailed where a table of the copy is another one."""
    for model in _models():
        if digest(model, "default") != digest(model, TARGET):
            raise MoveFailed(
                f"The copy of {model._meta.verbose_name_plural} differs from the original; nothing was stored."
            )


def digest(model: type[models.Model], alias: str) -> str:
    """The SHA-256 of all rows of a table, the same on every database."""
    sum_ = hashlib.sha256()
    for row in _rows(model, alias):
        for value in row:
            plain = bytes(value) if isinstance(value, bytes | memoryview) else repr(value).encode()
            sum_.update(len(plain).to_bytes(8, "little") + plain)
    return sum_.hexdigest()


def _number_on() -> None:
    """New rows get numbers after the copied ones."""
    with connections[TARGET].cursor() as cursor:
        for statement in connections[TARGET].ops.sequence_reset_sql(no_style(), _models()):
            cursor.execute(statement)
