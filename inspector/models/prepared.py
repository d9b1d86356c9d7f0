"""Statements that are compiled once: Django makes the SQL of a query anew each time, which takes ten times as long as
SQLite takes to run it. For what running agents cause many times a second.

    counts = Select(Session.objects.of(Slot(Session, "project")).values_list("calls", "events"))
    counts.first(project=project.pk)  # (12, 40), or None

A `Slot` stands where a value comes in later. A statement is compiled for a kind of database when it first runs there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from django.db import connection
from django.db.models import Expression, Model, QuerySet
from django.db.models.constants import OnConflict
from django.db.models.sql import InsertQuery, UpdateQuery


class Slot(Expression):
    """The place of a value that is stored as that of a column, under whose name it is given, or under another one."""

    def __init__(self, model: type[Model], column: str, name: str = "") -> None:
        field: Any = model._meta.get_field(column)
        super().__init__(output_field=field)
        self.name = name or column

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, tuple[Any, ...]]:
        """Leaves itself in the list of values."""
        return "%s", (self,)


class _Compiled(NamedTuple):
    sql: str
    values: Sequence[Any]  # with slots
    columns: Sequence[str] = ()
    converters: Mapping[int, tuple[list[Callable[..., Any]], Any]] = {}  # by the number of the column

    def filled(self, given: Mapping[str, Any]) -> list[Any]:
        """The values of the statement, in the order in which it names them."""
        return [_stored(value, given) if isinstance(value, Slot) else value for value in self.values]


def _stored(slot: Slot, given: Mapping[str, Any]) -> Any:
    field: Any = slot.output_field
    return field.get_db_prep_save(given[slot.name], connection=connection)


class _Statement:
    def __init__(self) -> None:
        self._compiled: dict[str, _Compiled] = {}  # by the kind of database

    def _compile(self) -> _Compiled:
        raise NotImplementedError

    def _here(self) -> _Compiled:
        if (known := self._compiled.get(connection.vendor)) is None:
            known = self._compiled[connection.vendor] = self._compile()
        return known


class Select(_Statement):
    """A query of some columns of one table (`values_list`), or of rows with some of theirs (`only`). One that locks its
    rows is run within a transaction."""

    def __init__(self, rows: QuerySet[Any, Any]) -> None:
        super().__init__()
        self._rows = rows

    def all(self, **values: Any) -> list[tuple[Any, ...]]:
        """The rows, with these values in the slots."""
        compiled = self._here()
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.filled(values))
            rows = cursor.fetchall()
        return [self._converted(row, compiled) for row in rows] if compiled.converters else rows

    def first(self, **values: Any) -> tuple[Any, ...] | None:
        """The first row; None where there is none."""
        return next(iter(self.all(**values)), None)

    def row(self, **values: Any) -> Any:
        """The first row, as its model; None where there is none. What was not asked for is loaded when it is used."""
        columns = self.first(**values)
        return None if columns is None else self._rows.model.from_db(connection.alias, self._here().columns, columns)

    def _compile(self) -> _Compiled:
        compiler: Any = self._rows.query.chain().get_compiler(connection=connection)
        sql, values = compiler.as_sql()
        columns = [column for column, *_ in compiler.select[: compiler.col_count]]
        names = [column.target.attname for column in columns]
        return _Compiled(sql, values, names, compiler.get_converters(columns))

    @staticmethod
    def _converted(row: Sequence[Any], compiled: _Compiled) -> tuple[Any, ...]:
        values = list(row)
        for place, (converters, column) in compiled.converters.items():
            for convert in converters:
                values[place] = convert(values[place], column, connection)
        return tuple(values)


class Update(_Statement):
    """A change of columns of some rows. A column whose new value is not given here is a slot of its own name."""

    def __init__(self, rows: QuerySet[Any, Any], *columns: str, **given: Any) -> None:
        super().__init__()
        self._rows, self._columns, self._given = rows, columns, given

    def run(self, **values: Any) -> int:
        """How many rows were changed, with these values in the slots."""
        compiled = self._here()
        with connection.cursor() as cursor:
            cursor.execute(compiled.sql, compiled.filled(values))
            return int(cursor.rowcount)

    def _compile(self) -> _Compiled:
        query: Any = self._rows.query.chain(UpdateQuery)
        slots = {name: Slot(self._rows.model, name) for name in self._columns}
        query.add_update_values({**slots, **self._given})
        sql, values = query.get_compiler(connection=connection).as_sql()
        return _Compiled(sql, values)


class Insert(_Statement):
    """New rows with these columns; where `unique` ones are taken, the others of the row that has them are changed."""

    def __init__(self, model: type[Model], *columns: str, unique: Sequence[str] = ()) -> None:
        super().__init__()
        self._model, self._columns, self._unique = model, columns, tuple(unique)

    def run(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Insert rows, each with its values by the names of the columns."""
        compiled = self._here()
        if some := [compiled.filled(row) for row in rows]:
            with connection.cursor() as cursor:
                cursor.executemany(compiled.sql, some)

    def _compile(self) -> _Compiled:
        fields: list[Any] = [self._model._meta.get_field(name) for name in self._columns]
        conflict: dict[str, Any] = {}
        if self._unique:
            unique = [field for field in fields if field.name in self._unique]
            others = [field for field in fields if field.name not in self._unique]
            conflict = {"on_conflict": OnConflict.UPDATE, "unique_fields": unique, "update_fields": others}
        query: Any = InsertQuery(self._model, **conflict)
        row = self._model(**{field.attname: Slot(self._model, field.name) for field in fields})
        query.insert_values(fields, [row])
        ((sql, values),) = query.get_compiler(connection=connection).as_sql()
        return _Compiled(sql, values)
