"""A large array: it is read element by element, and says the same as a small one."""

import cProfile
import json

import pytest

from guard_core.errors import DamagedRecording, LimitExceeded
from guard_core.recordings.reading import json_array
from guard_core.recordings.reading.known_names import Names, words
from guard_core.recordings.reading.large_array import ELEMENT_BYTES, HEADS
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.watch import ObjectWatch
from tests.profiling import calls_of


def small_and_large(content, **options):
    """The same source twice, the second time as a large one."""
    for shelve_from in (len(content) + 1, 0):
        with ByteSource.open(content, **options) as source:
            source.shelve_from = shelve_from
            yield source


ELEMENTS = [{"a": 1}, {"b": [1.5, -0.0, None]}, {"ä": "€\n"}, 7, "x", []]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_a_large_array_is_read_element_by_element(mark):
    content = mark + json.dumps(ELEMENTS, indent=1, ensure_ascii=False).encode()
    for source in small_and_large(content, strict=True):
        assert source.shape is SourceShape.JSON
        assert source.json_head()[:2] == ELEMENTS[:2]
        assert [list(source.elements()), list(source.elements())] == [ELEMENTS, ELEMENTS]
        assert str(list(source.elements(allow_nan=True))) == str([{"a": 1}, {"b": [1.5, 0.0, None]}, *ELEMENTS[2:]])
        assert source.json() == source.json_head() == ELEMENTS


def test_of_a_large_array_only_the_beginning_is_kept():
    elements = [{"number": number, "text": "x" * ELEMENT_BYTES} for number in range(1000)]
    for source, kept in zip(small_and_large(json.dumps(elements).encode()), (1000, HEADS), strict=True):
        assert source.json_head() == elements[:kept]


@pytest.mark.parametrize("first", [0, 2 * HEADS])
def test_an_array_of_very_small_elements_is_parsed_as_a_whole(first):
    """To part it takes many times as long; wherever in the array they are."""
    elements = [{"text": "x" * ELEMENT_BYTES}] * first + [1] * 100_000
    with cProfile.Profile() as profile:
        for source in small_and_large(json.dumps(elements).encode()):
            assert source.json_head() == list(source.elements()) == elements
    assert HEADS <= calls_of(profile, json_array.elements) < 1000


def test_an_element_of_a_large_array_is_new_in_every_pass():
    with ByteSource.open(b'[{"a":1}]') as source:
        source.shelve_from = 0
        next(source.elements())["a"] = 2
        assert list(source.elements()) == [{"a": 1}]


def test_another_value_is_listed_as_its_reader_says():
    for source in small_and_large(b'{"data":[1,2]}'):
        assert list(source.elements()) == [{"data": [1, 2]}]
        assert list(source.elements(lambda value: value["data"])) == [1, 2]


DAMAGED_ARRAYS = [
    b'[{"a":1},\n{"\xc3\xa4":1}, {"a":1,,}]',
    b'[{"a":1},{"b":1,"c":2,\n "b":3},{"a":1,"a":2}]',
    b'[{"a":NaN},{"b":-Infinity}]',
    b'[{"a":"\\u0000\\ud800"},\n{"\xc3\xa4":"\\u0000"}]',
    b'[{"a":"%s"},{"b":"\\u0000","c":NaN,"d":1,"d":2}]' % (b"\\u0000" * 99),
    b'[{"a":"%s"},{"b":"%s"}]' % (b"\\u0000" * 150, b"\\udfff" * 7),
    b'[{"a":1},{"b":"\xff"}]',
    b'[{"a":1},{"b":18446744073709551616}]',
    b'[{"a":1},{"b":1e999}]',
    b'[{"a":1},{"b":1',
    b'[{"a":1},{"b":1}],',
    b'[{"a":1} {"b":1}]',
    b'[{"a":1},%s]' % (b"[" * 127 + b"]" * 127),
    b'[{"a":1},%s]' % (b"[" * 128 + b"]" * 128),
    b'[{"a":1},{%s}]' % b",".join(b'"%d":0' % number for number in range(10_001)),
    b'[\n{"a":1}\n{"b":1}\n]',
]


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("content", DAMAGED_ARRAYS, ids=lambda content: content[:30])
def test_damage_of_a_large_array_is_named_as_that_of_a_small_one(content, strict):
    outcomes_of_both = []
    for source in small_and_large(content, strict=strict):
        outcomes = [source.shape]
        for allow_nan in (True, False, True):
            try:
                outcomes.append(list(source.elements(allow_nan=allow_nan)))
            except (DamagedRecording, LimitExceeded) as error:
                outcomes.append((type(error), error.reason, error.line, error.column))
        outcomes_of_both.append((outcomes, source.notes))

    assert outcomes_of_both[0] == outcomes_of_both[1]


def test_what_the_watch_finds_in_a_large_array_has_its_place():
    content = '[{"ä":0,"usage":{"input_tokens":5}}, {"ö":1,"usage":{"input_tokens":-1}},\n{"id":"none"},\n'
    content += '{"usage":\n{"input_tokens":-2}}]'
    for source in small_and_large(content.encode()):
        source.watch = ObjectWatch(Names(usage=words("usage"), counts=words("input_tokens")))
        first, again = list(source.elements()), list(source.elements())

        assert first == again == [{"ä": 0, "usage": {"input_tokens": 5}}, {"ö": 1, "usage": None}, {}, {"usage": None}]
        assert sorted((problem.line, problem.column) for problem in source.notes.problems) == [(1, 54), (4, 2)]
        assert (source.watch.placeholders, source.watch.usages) == (1, 1)


def test_a_large_array_that_changes_while_it_is_read_is_damaged(tmp_path):
    path = tmp_path / "array.json"
    path.write_bytes(b'[{"a":1},{"a":2}]')
    with ByteSource.open(path) as source:
        source.shelve_from = 0
        assert source.json_head() == [{"a": 1}, {"a": 2}]
        path.write_bytes(b'[{"a":1},{"a"')
        with pytest.raises(DamagedRecording, match="has changed while it was read"):
            list(source.elements())
