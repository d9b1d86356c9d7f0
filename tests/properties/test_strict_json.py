"""Laws of strict JSON: short and long texts are judged by the same rules, however they are written."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from guard_core.recordings.reading.limits import Limits
from guard_core.recordings.reading.strict_json import JsonProblem, decode

LIMITS = Limits()
LONG = "x" * 20_000
NAMES = st.text(st.sampled_from('a":\\ \n'), max_size=3)
VALUES = st.recursive(
    st.integers(0, 9) | NAMES,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(NAMES, inner), max_size=3).map(tuple),
    max_leaves=8,
)


def written(value, colon):
    """JSON of a value in which an object is a tuple of its pairs, so that keys may repeat; any of them?"""
    if isinstance(value, tuple):
        items = [(json.dumps(name), *written(item, colon)) for name, item in value]
        repeated = len({name for name, _ in value}) < len(value)
        text = ",".join(name + colon + item for name, item, _ in items)
        return "{" + text + "}", repeated or any(below for _, _, below in items)
    if isinstance(value, list):
        items = [written(item, colon) for item in value]
        return "[" + ", ".join(text for text, _ in items) + "]", any(below for _, below in items)
    return json.dumps(value), False


@given(VALUES, st.sampled_from([":", ": ", " :", "\n:", "\t: ", "\n  :"]), st.booleans())
@example((("a", 1), ("a", 2)), "\n:", True)
@example((("\\", 1), ("\\", 2)), ":", True)
@example((("a", '":'), ("a", 2)), " :", True)
@example(':"', ":", False)
def test_keys_that_repeat_are_found(value, colon, first):
    plain, repeats = written(value, colon)
    for text in (plain, f'[{plain}, "{LONG}"]' if first else f'["{LONG}", {plain}]'):
        if repeats:
            with pytest.raises(JsonProblem, match="twice in one object"):
                decode(text.encode(), LIMITS)
        else:
            assert decode(text.encode(), LIMITS).value == json.loads(text)


@pytest.mark.parametrize("padding", ["", LONG])
@pytest.mark.parametrize(
    ("escape", "mended"),
    [("\\u0000", "\u2400"), ("\\ud800", "\ufffd"), ("\\uDC00", "\ufffd"), ("\\ud83d\\ude00", "😀")],
)
def test_escapes_that_no_store_takes_are_mended(escape, mended, padding):
    decoded = decode(f'{{"a": "{padding}b{escape}\\\\u0000c"}}'.encode(), LIMITS)
    assert decoded.value == {"a": f"{padding}b{mended}\\u0000c"}
    places = [] if mended == "😀" else [len(padding) + len('{"a": "b')]
    assert [place.offset for place in decoded.mended] == places
