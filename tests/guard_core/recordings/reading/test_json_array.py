"""The elements of an array are found without parsing it, wherever a window of its bytes ends."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guard_core.recordings.reading import json_array, strict_json
from guard_core.recordings.reading.limits import Limits

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)


def parted(content: bytes, window: int = 1) -> list[tuple[int, bytes]]:
    return list(json_array.elements(io.BytesIO(content), window))


@given(values=st.lists(VALUES, max_size=6), indent=st.sampled_from([None, 0, 2]), ascii_only=st.booleans())
def test_each_element_is_there_with_its_place(values, indent, ascii_only):
    content = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")

    for window in (1, 7, 1000):
        found = parted(content, window)
        assert [json.loads(raw.decode("utf-8", "surrogatepass")) for _, raw in found] == values
        assert all(content[offset : offset + len(raw)] == raw == raw.strip() for offset, raw in found)


@pytest.mark.parametrize(
    ("content", "elements"),
    [
        (b" [ ] \n", []),
        (b"\t[1 ,\n2]", [b"1", b"2"]),
        (b'[{"a":"\\ud83d"},{"b":"]\\"}"}]', [b'{"a":"\\ud83d"}', b'{"b":"]\\"}"}']),
        (b'[{"a":NaN},[-Infinity],NaN,{"b":1}]', [b'{"a":NaN}', b"[-Infinity]", b"NaN", b'{"b":1}']),
        (b'[{"a":1e999},{"a":1,"a":2}]', [b'{"a":1e999}', b'{"a":1,"a":2}']),  # damage inside is not looked for
    ],
)
def test_values_that_the_parser_refuses_have_an_end_too(content, elements):
    for window in (1, 3, 1000):
        assert [raw for _, raw in parted(content, window)] == elements


DEEP = b"[" * 5000 + b"]" * 5000 + b","
NO_ARRAYS = [b"", b" ", b"{}", b"[", b"[1", b"[1,", b"[1,]", b"[,1]", b"[1 2]", b"[1}", b"[1]]", b"[1],", b'["a]', DEEP]
NO_ARRAYS += [b'[{"a":[}]', b"[tru]", b"[-]", b"[nul, 1]"]


@pytest.mark.parametrize("content", NO_ARRAYS, ids=lambda content: content[:20])
def test_what_is_no_array_is_not_parted(content):
    for window in (1, 1000):
        with pytest.raises(json_array.NotParted):
            parted(content, window)


@given(value=VALUES)
def test_a_value_is_decoded_again_as_it_was_decoded(value):
    content = json.dumps([value, -0.0, "\x00"]).encode()

    for raw in (content, json.dumps(value).encode("utf-8", "surrogatepass")):
        once = strict_json.decode(raw, Limits(), mend=True).value
        again = strict_json.decode_again(raw, Limits(), mend=True)
        assert json.dumps(again) == json.dumps(once)  # tells a zero from a negative one
