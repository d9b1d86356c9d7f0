"""The bytes of a recording: what counts as a line, a value, an end; what is refused and where the damage is."""

import cProfile

import pytest

from guard_core.errors import DamagedRecording
from guard_core.recordings.reading import strict_json
from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.source import UNFINISHED, ByteSource, SourceShape
from tests.profiling import calls_of


def objects(content, **options):
    with ByteSource.open(content, **options) as source:
        return [line.obj for line in source.lines()], source.notes


def damage(content):
    """Line and column of the first damage."""
    with pytest.raises(DamagedRecording) as caught:
        objects(content, strict=True)
    return caught.value.line, caught.value.column


def test_lines_end_at_newlines_only():
    objects_read, _ = objects('{"a":"one\u2028two\x85three\u2029"}\r\n{"a":2}\n'.encode())

    assert objects_read == [{"a": "one\u2028two\x85three\u2029"}, {"a": 2}]


def test_a_byte_order_mark_is_dropped():
    objects_read, notes = objects(b'\xef\xbb\xbf{"a":1}\n{"a":2}\n', strict=True)

    assert (objects_read, notes.lines) == ([{"a": 1}, {"a": 2}], 2)


def test_the_offset_is_that_of_the_first_byte():
    content = b'\xef\xbb\xbf{"a":1}\n\n{"a":2}\n'
    with ByteSource.open(content) as source:
        offsets = [line.offset for line in source.lines()]

    assert [content[offset : offset + 5] for offset in offsets] == [b'{"a":', b'{"a":']


def test_columns_count_characters_from_one():
    assert damage('{"a":1}\n{"ä":"€",,}\n'.encode()) == (2, 10)


def test_a_file_that_is_still_written_is_no_damage():
    objects_read, notes = objects(b'{"a":1}\n{"a":', strict=True)

    assert objects_read == [{"a": 1}]
    assert [problem.line for problem in notes.problems] == [2]
    assert notes.problems[0].message.startswith(UNFINISHED)


@pytest.mark.parametrize("end", [b'{"a":-', b'{"a":[1.', b'{"a":tru', b'{"a":"\\', '{"a":"汉'.encode()[:-1], b" {"])
def test_an_object_may_be_cut_anywhere(end):
    _, notes = objects(b'{"a":1}\n' + end, strict=True)

    assert [problem.line for problem in notes.problems] == [2]
    assert notes.problems[0].message.startswith(UNFINISHED)


@pytest.mark.parametrize("end", [b"[1]", b"7", b'"x', b"[1", b"\x00\x00", b'{"a":1}}', b'{"a":1,"a":2}', b"\xff{"])
def test_a_last_line_that_is_no_beginning_of_an_object_is_damage(end):
    assert damage(b'{"a":1}\n' + end)[0] == 2
    objects_read, notes = objects(b'{"a":1}\n' + end)

    assert (objects_read, notes.skipped, notes.problem_count) == ([{"a": 1}], {}, 1)


def test_a_lone_unfinished_line_is_damage():
    assert damage(b'{"a":')[0] == 1


def test_a_second_pass_tells_nothing_twice():
    with ByteSource.open(b'{"a":1}\n{broken}\n{"a":"\\u0000"}\n') as source:
        first = [line.obj for line in source.lines()]
        second = [line.obj for line in source.lines()]

        assert first == second
        assert (source.notes.problem_count, source.notes.mended) == (2, 1)


def test_a_line_that_a_format_is_recognised_by_is_parsed_once():
    with cProfile.Profile() as profile, ByteSource.open(b'{"a":"b\\u0000"}\n{"a":2}\n') as source:
        heads = [line.obj for line in source.head_lines()]
        lines = [line.obj for line in source.lines()]
        again = [line.obj for line in source.lines()]

    assert heads == lines == again
    assert (
        calls_of(profile, strict_json.decode) == 2 + 2
    )  # a second pass has values of its own, which a reader may change
    assert source.notes.mended == 1


def test_a_line_over_the_limit_is_left_out_and_the_next_is_read():
    long = b'{"a":"' + b"x" * 100 + b'"}\n'
    objects_read, notes = objects(long + b'{"a":2}\n', limits=Limits(line_bytes=50))

    assert objects_read == [{"a": 2}]
    assert notes.problems[0].message == "a line longer than 50 bytes"


def test_a_line_at_the_limit_is_read():
    objects_read, _ = objects(b'{"a":1}\n', limits=Limits(line_bytes=7), strict=True)

    assert objects_read == [{"a": 1}]


@pytest.mark.parametrize(
    ("content", "shape"),
    [
        (b'{"a":\n1}', SourceShape.JSON),
        (b'{"a":1}', SourceShape.JSON),
        (b'[{"a":1},\n{"b":2}]\n', SourceShape.JSON),
        (b'{"a":1}\n{"b":2}\n', SourceShape.LINES),
        (b'// note\n{"a":1}\n{"b":2}\n', SourceShape.LINES),
        (b'{"a":1}\n{"b"', SourceShape.LINES),
        (b'{"a":1', SourceShape.JSON),
        (b"#### hello\n", SourceShape.TEXT),
        (b"\n \n", SourceShape.EMPTY),
        (b"PK\x03\x04....", SourceShape.ZIP),
        (b"SQLite format 3\x00....", SourceShape.SQLITE),
    ],
)
def test_the_shape_of_the_content(content, shape):
    with ByteSource.open(content) as source:
        assert source.shape is shape


def test_nan_is_null_where_a_format_allows_it():
    with ByteSource.open(b'{"a":NaN,"b":"NaN","c":[-Infinity]}', strict=True) as source:
        assert source.json(allow_nan=True) == {"a": None, "b": "NaN", "c": [None]}
        with pytest.raises(DamagedRecording, match="NaN, which is not a JSON number"):
            source.json()


def test_what_no_store_takes_is_replaced_and_noted():
    objects_read, notes = objects(b'{"a":"x\\u0000\\ud83dy \\ud83d\\ude00"}\n{"b":-0.0}\n')

    assert objects_read == [{"a": "x\u2400\ufffdy \U0001f600"}, {"b": 0.0}]
    assert (notes.mended, notes.problem_count) == (2, 2)


def test_progress_ends_at_the_whole_size():
    seen = []
    content = b'{"a":"' + b"x" * 2**20 + b'"}\n'
    with ByteSource.open(content * 3, progress=lambda done, total: seen.append((done, total))) as source:
        assert len(list(source.lines())) == 3

    assert seen[-1] == (len(content) * 3, len(content) * 3)
    assert seen == sorted(seen)


def test_replaced_characters_are_all_counted_and_the_first_are_listed():
    content = b'{"a":"' + b"\\u0000" * 5000 + b'"}\n{"a":2}\n'
    objects_read, notes = objects(content)

    assert objects_read[0] == {"a": "\u2400" * 5000}
    assert (notes.mended, notes.problem_count, len(notes.problems)) == (5000, 5000, 100)


def test_kinds_that_are_left_out_are_listed_up_to_a_limit():
    with ByteSource.open(b"{}") as source:
        for number in range(1000):
            source.notes.skip(f"kind {number}")

        assert len(source.notes.skipped) == 201
        assert source.notes.skipped["other kinds"] == 800


@pytest.mark.parametrize("allow_nan", [False, True])
def test_a_damaged_value_is_parsed_once_however_many_formats_ask(allow_nan):
    with ByteSource.open(b'{"a":[1,2]}}', strict=True) as source:
        errors = []
        for asked in (False, allow_nan):
            with pytest.raises(DamagedRecording) as caught:
                source.json(allow_nan=asked)
            errors.append(caught.value)

    assert errors[0] is errors[1]
    assert (errors[0].line, errors[0].column) == (1, 13)


def test_a_value_that_only_not_a_number_spoils_is_read_where_that_is_allowed():
    with ByteSource.open(b'{"a":NaN}', strict=True) as source:
        with pytest.raises(DamagedRecording):
            source.json()
        assert source.json(allow_nan=True) == {"a": None}


COPIED = b'{"id": "head"}\n' + b"".join(b'{"line": %d, "words": "%s"}\n' % (number, b"x" * 90) for number in range(9))
BLANK = b"\n"


@pytest.mark.parametrize(
    ("content", "lines", "folded"),
    [
        (COPIED, 10, 0),
        (COPIED * 3, 10, 20),
        (COPIED + BLANK + COPIED, 10, 10),
        (COPIED + COPIED[:-40], 10, 10),  # a cut line of a copy is one
        (COPIED + COPIED.rstrip(b"\n"), 10, 10),
        (COPIED[:700] + b"\n" + COPIED, 16, 0),  # a line that is cut in the middle is no line of the copy behind it
        (COPIED + b'{"id": "head"}\n{"line": 0}\n', 12, 0),
        (COPIED + b'{"id": "head"}\n', 11, 0),
        (b'{"id": "head"}\n' * 60, 60, 0),
        (b'{"line": 1, "words": "%s"}\n' % (b"x" * 600) * 2, 2, 0),
    ],
)
def test_a_file_that_is_in_itself_twice_is_read_once(content, lines, folded):
    with ByteSource.open(content) as source:
        for _ in range(2):  # a second pass notes nothing again
            assert len(list(source.lines())) == lines
            assert source.notes.folded == folded
