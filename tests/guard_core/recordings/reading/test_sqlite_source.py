"""SQLite files of unknown origin."""

import contextlib
import sqlite3
from contextlib import closing

import pytest

from guard_core.errors import DamagedRecording, LimitExceeded, UnknownFormat
from guard_core.recordings import read
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.source import ByteSource
from guard_core.recordings.reading.sqlite_source import Database, tables


def content(*statements):
    """The bytes of a database made by these statements."""
    with closing(sqlite3.connect(":memory:")) as connection:
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        return connection.serialize()


TABLE = "CREATE TABLE notes (id INTEGER, text TEXT)"
ROWS = "INSERT INTO notes VALUES (2, 'two'), (1, 'one')"


def rows(data, *columns, table="notes", limits=None, **options):
    with ByteSource.open(data, limits=limits) as source, Database(source) as database:
        return list(database.rows(table, columns, **options))


def test_rows_are_objects_in_the_order_asked_for():
    assert rows(content(TABLE, ROWS), "id", "text", order=("id",)) == [
        {"id": 1, "text": "one"},
        {"id": 2, "text": "two"},
    ]


def test_a_column_that_is_missing_is_none():
    assert rows(content(TABLE, ROWS), "id", "later", where={"id": 2, "later": 5}) == [{"id": 2, "later": None}]


def test_a_table_that_is_missing_has_no_rows():
    assert rows(content(TABLE, ROWS), table="other") == []


def test_views_and_virtual_tables_are_not_tables():
    endless = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS id, x AS text FROM n"
    data = content(f"CREATE VIEW notes AS {endless}", "CREATE TABLE plain (x)")
    with ByteSource.open(data) as source:
        assert tables(source) == {"plain": ("x",)}

    assert rows(data) == []


def test_an_index_over_json_hinders_no_reading_and_no_function_of_the_schema_is_run():
    """SQLite 3.40 refuses to open such a database where it distrusts the schema from the beginning."""
    index = "CREATE INDEX words ON notes (json_extract(text, '$.words'))"
    view = "CREATE VIEW shown AS SELECT load_extension('x') AS text"
    data = content(TABLE, "INSERT INTO notes VALUES (1, '{}')", index, view)

    assert rows(data, "text") == [{"text": "{}"}]
    with ByteSource.open(data) as source, Database(source) as database:
        assert list(database._connection.execute("SELECT count(*) FROM notes")) == [(1,)]
        with pytest.raises(DamagedRecording, match=r"prohibited|not authorized|unsafe use"):
            list(database._query("SELECT text FROM shown"))


def test_a_database_that_cannot_be_opened_is_refused_with_the_words_of_sqlite():
    data = content(TABLE).replace(b"CREATE TABLE notes", b"CREATE TABBY notes")

    with pytest.raises(UnknownFormat, match=r"no table that can be read: .*malformed database schema"):
        read(data)


def test_a_database_that_is_cut_off_is_said_to_be_with_its_bytes():
    data = content(TABLE, ROWS)

    with pytest.raises(UnknownFormat, match=f"can be read: it is cut off: it has 3,000 of {len(data):,} bytes"):
        read(data[:3_000])


def test_names_are_quoted():
    data = content('CREATE TABLE "a""; DROP TABLE b" ("x y" INTEGER)', 'INSERT INTO "a""; DROP TABLE b" VALUES (1)')

    assert rows(data, "x y", table='a"; DROP TABLE b') == [{"x y": 1}]


def test_nothing_can_be_written_or_attached(tmp_path):
    with ByteSource.open(content(TABLE, ROWS)) as source, Database(source) as database:
        for statement in ("DELETE FROM notes", f"ATTACH '{tmp_path}/x' AS x", "SELECT load_extension('x')"):
            with pytest.raises(DamagedRecording):
                list(database._query(statement))


def test_a_query_that_does_not_end_is_interrupted():
    crossed = "SELECT count(*) FROM notes a, notes b, notes c, notes d, notes e, notes f"
    many = "INSERT INTO notes SELECT id, text FROM notes"
    data = content(TABLE, ROWS, *[many] * 8)
    with (
        ByteSource.open(data, limits=Limits(database_seconds=0.02)) as source,
        Database(source) as database,
        pytest.raises(LimitExceeded, match=r"longer than 0\.02 seconds"),
    ):
        list(database._query(crossed))


def test_a_value_over_the_limit_is_refused():
    data = content(TABLE, "INSERT INTO notes VALUES (1, printf('%.*c', 5000, 'x'))")

    with pytest.raises(LimitExceeded, match="longer than 1000 bytes"):
        rows(data, "text", limits=Limits(line_bytes=1000))


def test_text_is_made_storable():
    data = content(TABLE, "INSERT INTO notes VALUES (1, CAST(x'6100ff' AS TEXT))")

    assert rows(data, "text") == [{"text": "a\u2400\ufffd"}]


def test_text_that_is_not_utf_8_is_told_with_its_row():
    data = content(TABLE, ROWS, "INSERT INTO notes VALUES (3, CAST(x'61ff' AS TEXT))")
    sentence = "row 3 of the table notes: the byte 0xff, which is not UTF-8"
    with (
        ByteSource.open(data, strict=True) as source,
        Database(source) as database,
        pytest.raises(DamagedRecording, match=sentence),
    ):
        list(database.rows("notes"))
    with ByteSource.open(data) as source, Database(source) as database:
        assert len(list(database.rows("notes"))) == 3
        assert [problem.message for problem in source.notes.problems] == [sentence]


@pytest.mark.parametrize("at", [100, 105, 1000, 4096, 4200])
def test_a_damaged_page_gives_a_sentence(at):
    data = bytearray(content(TABLE, ROWS, *["INSERT INTO notes SELECT id, text FROM notes"] * 9))
    data[at : at + 60] = b"\xff" * 60

    with contextlib.suppress(DamagedRecording):
        assert all(set(row) == {"text"} for row in rows(bytes(data), "text"))


def test_a_file_that_is_cut_gives_a_sentence():
    data = content(TABLE, ROWS, *["INSERT INTO notes SELECT id, text FROM notes"] * 9)

    with pytest.raises(DamagedRecording, match="the database is damaged"):
        rows(data[:5000], "text")


def test_the_file_beside_a_database_is_left_alone(tmp_path):
    path = tmp_path / "a.db"
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute(TABLE)
    connection.execute(ROWS)
    connection.commit()
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir() if file.suffix != ".db-shm"}
    table = rows(path, "id", order=("rowid",))

    assert table == [{"id": 2}, {"id": 1}]
    assert {name: (tmp_path / name).read_bytes() for name in before} == before
    connection.close()


def test_a_database_whose_tables_are_still_in_the_log_says_so():
    data = content("CREATE TABLE x (y)", "DROP TABLE x")

    with pytest.raises(UnknownFormat, match="without its -wal file"):
        read(data[:18] + b"\x02\x02" + data[20:])


def test_a_schema_that_is_not_text_is_told_in_a_sentence():
    data = content(TABLE, ROWS).replace(b"CREATE TABLE notes", b"CREAT\x8a TABLE notes")

    with pytest.raises(DamagedRecording, match="schema is not text"):
        rows(data, "id")
