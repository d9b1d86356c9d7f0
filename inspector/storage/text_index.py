"""The text index: FTS5 without its own copy of the texts on SQLite, tsvector and GIN on PostgreSQL.

An entry is one event (or a piece of a very long one, on PostgreSQL), under the event's row number. Row numbers grow,
are never used again, and on SQLite those stored together follow one another, since there is one writer: so a session
lies in one place of the index there, or in few. Entries of events that are gone are passed over by the joins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID

import msgspec
from django.db import connection, transaction

from inspector.models import Event, Project, Session
from inspector.storage.query_words import Query, fold

EVENT, SESSION = Event._meta.db_table, Session._meta.db_table
PIECE_CHARS = 100_000  # a tsvector holds 1 MB at most
COUNT_UP_TO = 1_000  # hits; beyond that pages say "more than"
_BREAKS = str.maketrans({chr(code): " " for code in range(128) if not chr(code).isalnum()})
_GAPS = re.compile(r"[\W_]+")


class IndexedText(NamedTuple):
    """The row number of an event and its text."""

    event_id: int
    text: str


class TextPlace(NamedTuple):
    """Where something was found."""

    session_id: UUID
    seq: int
    payload_id: bytes


class TextIndex(Protocol):
    """What both databases offer."""

    def add(self, session: Session, entries: Sequence[IndexedText]) -> None: ...

    def remove(self, session: Session, entries: Sequence[IndexedText]) -> None: ...

    def drop(self, session: Session) -> bool: ...

    def in_session(self, query: Query, session: Session, start: int, limit: int) -> list[TextPlace]: ...

    def events(self, query: Query, session: Session) -> list[int]: ...

    def count(self, query: Query, session: Session) -> int: ...

    def sessions(self, project: Project, query: Query, before: int | None, limit: int) -> list[tuple[UUID, int]]: ...


def text_index() -> TextIndex:
    """The index of the database in use."""
    return PostgresIndex() if connection.vendor == "postgresql" else SqliteIndex()


class SqliteIndex:
    """FTS5, contentless: it keeps words and places, never a second copy of a text."""

    def add(self, session: Session, entries: Sequence[IndexedText]) -> None:
        """One statement for all, during which other threads run: a call for each would wait for them each time."""
        words = msgspec.json.encode({entry.event_id: entry.text for entry in entries}).decode()
        statement = "INSERT INTO inspector_text (rowid, words) SELECT CAST(key AS INTEGER), value FROM json_each(%s)"
        with connection.cursor() as cursor:
            cursor.execute(statement, [words])

    def remove(self, session: Session, entries: Sequence[IndexedText]) -> None:
        """A contentless index removes an entry only when given the text it had."""
        with connection.cursor() as cursor:
            statement = "INSERT INTO inspector_text (inspector_text, rowid, words) VALUES ('delete', %s, %s)"
            cursor.executemany(statement, entries)

    def drop(self, session: Session) -> bool:
        """Not at once: the index does not know whose its entries are, and removes one only when given its text."""
        return False

    def in_session(self, query: Query, session: Session, start: int, limit: int) -> list[TextPlace]:
        first, last = self._range(session, start)
        return _places(
            # CROSS JOIN keeps the order of the tables: words first, then the row of each hit.
            f"SELECT e.session_id, e.seq, e.payload_id FROM inspector_text t CROSS JOIN {EVENT} e ON e.id = t.rowid "
            "WHERE t.words MATCH %s AND t.rowid BETWEEN %s AND %s AND e.session_id = %s ORDER BY t.rowid LIMIT %s",
            [self._match(query), first, last, session.pk.hex, limit],
        )

    def events(self, query: Query, session: Session) -> list[int]:
        rows = _rows(
            f"SELECT e.seq FROM inspector_text t CROSS JOIN {EVENT} e ON e.id = t.rowid "
            "WHERE t.words MATCH %s AND t.rowid BETWEEN %s AND %s AND e.session_id = %s ORDER BY t.rowid",
            [self._match(query), *self._range(session, 0), session.pk.hex],
        )
        return [int(seq) for (seq,) in rows]

    def count(self, query: Query, session: Session) -> int:
        return _number(
            f"SELECT count(*) FROM (SELECT 1 FROM inspector_text t CROSS JOIN {EVENT} e ON e.id = t.rowid "
            "WHERE t.words MATCH %s AND t.rowid BETWEEN %s AND %s AND e.session_id = %s LIMIT %s)",
            [self._match(query), *self._range(session, 0), session.pk.hex, COUNT_UP_TO + 1],
        )

    def sessions(self, project: Project, query: Query, before: int | None, limit: int) -> list[tuple[UUID, int]]:
        """One look for each session: the newest hit, then the newest below the events of its session."""
        sessions: dict[UUID, int] = {}
        below = 2**62 if before is None else before
        while len(sessions) < limit and (hit := self._newest(project, query, below)):
            key, row, listed = hit
            below = self._below(key, row)
            if listed:
                sessions.setdefault(key, below)
        return list(sessions.items())

    def _newest(self, project: Project, query: Query, below: int) -> tuple[UUID, int, bool] | None:
        rows = _rows(
            "SELECT e.session_id, t.rowid, x.deleted IS NULL AND x.project_id = %s FROM inspector_text t "
            f"CROSS JOIN {EVENT} e ON e.id = t.rowid CROSS JOIN {SESSION} x ON x.id = e.session_id "
            "WHERE t.words MATCH %s AND t.rowid < %s ORDER BY t.rowid DESC LIMIT 1",
            [project.pk, self._match(query), below],
        )
        return next(((UUID(str(key)), int(row), bool(listed)) for key, row, listed in rows), None)

    def _below(self, key: UUID, row: int) -> int:
        """The first row of the session's events around a row; a session that has grown lies in several places."""
        log = Event.objects.in_session(key).order_by("seq").values_list("id", "seq")
        lowest, highest = log.first(), log.last()
        if lowest is None or highest is None:  # purged meanwhile
            return row
        if highest[0] - lowest[0] == highest[1]:
            return int(lowest[0])
        other = Event.unscoped.filter(id__lt=row).exclude(session_id=key).order_by("-id").values_list("id", flat=True)
        return int(other.first() or 0) + 1

    def _range(self, session: Session, start: int) -> tuple[int, int]:
        log = Event.objects.in_session(session).filter(seq__gte=start).values_list("id", flat=True)
        first = log.order_by("seq").first()
        return (first, log.order_by("-seq").first() or first) if first is not None else (0, -1)

    def _match(self, query: Query) -> str:
        return " AND ".join(f'"{" ".join(term.tokens)}"{" *" if term.prefix else ""}' for term in query.terms)


class PostgresIndex:
    """tsvector under a GIN index. Texts are cut into words here, so that both databases find the same."""

    def add(self, session: Session, entries: Sequence[IndexedText]) -> None:
        rows = []
        for event_id, text in entries:
            plain = text.translate(_BREAKS) if text.isascii() else _GAPS.sub(" ", fold(text))
            pieces = (plain[start : start + PIECE_CHARS] for start in range(0, len(plain), PIECE_CHARS))
            rows += [(event_id, session.pk, piece) for piece in pieces]
        with connection.cursor() as cursor:
            statement = "INSERT INTO inspector_text VALUES (%s, %s, to_tsvector('simple', %s))"
            cursor.executemany(statement, rows)

    def remove(self, session: Session, entries: Sequence[IndexedText]) -> None:
        with connection.cursor() as cursor:
            numbers = [entry.event_id for entry in entries]
            cursor.execute("DELETE FROM inspector_text WHERE event_id = ANY(%s)", [numbers])

    def drop(self, session: Session) -> bool:
        """All entries of a session in one statement; piece by piece, each would look through all of them."""
        with transaction.atomic(), connection.cursor() as cursor:
            Session.objects.row(session).update(indexed=0)
            cursor.execute("DELETE FROM inspector_text WHERE session_id = %s", [session.pk])
        return True

    def in_session(self, query: Query, session: Session, start: int, limit: int) -> list[TextPlace]:
        return _places(
            f"SELECT e.session_id, e.seq, e.payload_id FROM {EVENT} e WHERE e.id IN (SELECT event_id FROM "
            "inspector_text WHERE session_id = %s AND words @@ to_tsquery('simple', %s)) AND e.seq >= %s "
            "ORDER BY e.seq LIMIT %s",
            [session.pk, self._match(query), start, limit],
        )

    def events(self, query: Query, session: Session) -> list[int]:
        rows = _rows(
            f"SELECT e.seq FROM {EVENT} e WHERE e.session_id = %s AND e.id IN (SELECT event_id FROM inspector_text "
            "WHERE session_id = %s AND words @@ to_tsquery('simple', %s)) ORDER BY e.seq",
            [session.pk, session.pk, self._match(query)],
        )
        return [int(seq) for (seq,) in rows]

    def count(self, query: Query, session: Session) -> int:
        return _number(
            "SELECT count(*) FROM (SELECT DISTINCT event_id FROM inspector_text WHERE session_id = %s AND words @@ "
            "to_tsquery('simple', %s) LIMIT %s) AS found",
            [session.pk, self._match(query), COUNT_UP_TO + 1],
        )

    def sessions(self, project: Project, query: Query, before: int | None, limit: int) -> list[tuple[UUID, int]]:
        return [
            (UUID(str(key)), int(newest))
            for key, newest in _rows(
                f"SELECT t.session_id, max(t.event_id) AS newest FROM inspector_text t JOIN {EVENT} e ON e.id = "
                f"t.event_id JOIN {SESSION} x ON x.id = e.session_id AND x.project_id = %s AND x.deleted IS NULL "
                "WHERE t.words @@ to_tsquery('simple', %s) GROUP BY t.session_id HAVING max(t.event_id) < %s "
                "ORDER BY newest DESC LIMIT %s",
                [project.pk, self._match(query), 2**62 if before is None else before, limit],
            )
        ]

    def _match(self, query: Query) -> str:
        terms = ("<->".join(f"'{token}'" for token in term.tokens) + (":*" * term.prefix) for term in query.terms)
        return " & ".join(f"({term})" for term in terms)


def _rows(statement: str, values: list[Any]) -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return list(cursor.fetchall())


def _number(statement: str, values: list[Any]) -> int:
    return int(_rows(statement, values)[0][0])


def _places(statement: str, values: list[Any]) -> list[TextPlace]:
    return [TextPlace(UUID(str(key)), seq, bytes(payload)) for key, seq, payload in _rows(statement, values)]
