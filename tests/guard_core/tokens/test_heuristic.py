"""The heuristic counts bytes // 4 per field, with values rendered as Go renders them."""

import pytest

from guard_core.events import MediaPart, OtherPart, ReasoningPart, TextPart, ToolCallPart, ToolResultPart
from guard_core.sessions import ToolDefinition
from guard_core.tokens.heuristic import parts_costs, render, schema_json, tool_definition_tokens

NUMBERS = [
    (100, "100"),
    (100_000, "100000"),
    (1_000_000, "1e+06"),
    (1_234_567, "1.234567e+06"),
    (123_456_789_012, "1.23456789012e+11"),
    (0.5, "0.5"),
    (0.0001, "0.0001"),
    (0.00001, "1e-05"),
    (-2.50, "-2.5"),
    (0, "0"),
    (-0.0, "-0"),
    (1e21, "1e+21"),
]


@pytest.mark.parametrize(("number", "text"), NUMBERS)
def test_every_number_is_a_float_of_go(number, text):
    assert render(number) == text


def test_values_are_rendered_as_go_prints_them():
    assert render({"b": [1, "x", None], "a": {"ok": True}}) == "map[a:map[ok:true] b:[1 x <nil>]]"
    assert (render([]), render({}), render("as is")) == ("[]", "map[]", "as is")


def test_keys_are_sorted_by_their_bytes():
    assert render({"é": 1, "z": 2, "Z": 3}) == "map[Z:3 z:2 é:1]"


def test_every_field_is_floored_by_itself():
    call = ToolCallPart("search", {"param": "value"})
    result = ToolResultPart("search", {"result": "x" * 100})
    assert parts_costs([call]) == (1 + 1 + 1, 0, 0)
    assert parts_costs([result]) == (1 + (100 + 12) // 4, 0, 0)
    assert parts_costs([TextPart("abc"), TextPart("abc")]) == (0, 0, 0)


def test_a_missing_response_is_an_empty_map():
    assert parts_costs([ToolResultPart("search")]) == (2, 0, 0)


def test_reasoning_counts_as_text_and_bytes_count_not_characters():
    assert parts_costs([ReasoningPart("日本語テキスト")]) == (5, 0, 0)


def test_inline_data_and_metadata_stand_in_columns_of_their_own():
    parts = [MediaPart("image/png", 100), TextPart("", metadata={"some_key": "some value that is long"})]
    assert parts_costs(parts) == (0, 27, 7)
    assert parts_costs([OtherPart("server_tool", "x" * 40)]) == (0, 0, 10)


def test_a_reference_to_a_file_costs_nothing():
    assert parts_costs([MediaPart("image/png", 100, uri="gs://bucket/picture.png")]) == (0, 0, 0)


def test_schemas_are_encoded_as_go_encodes_them():
    assert schema_json({"b": 1, "a": "<é>&"}) == '{"a":"\\u003cé\\u003e\\u0026","b":1}'


@pytest.mark.parametrize(
    ("number", "written"),
    [
        (1.0, "1"),
        (-0.5, "-0.5"),
        (0, "0"),
        (1e16, "10000000000000000"),
        (1e21, "1e+21"),
        (0.00001, "0.00001"),
        (1e-7, "1e-7"),
        (2**53 + 1, "9007199254740992"),
        (12345678901234567890, "12345678901234567000"),
    ],
)
def test_numbers_of_schemas_are_floats_as_in_go(number, written):
    assert schema_json({"minimum": number}) == f'{{"minimum":{written}}}'
    assert tool_definition_tokens(ToolDefinition("a" * 8, "d" * 40, None)) == 12


def test_a_schema_with_a_number_beyond_every_float_counts_as_one_that_cannot_be_written():
    """Only a live agent has it: the text of a recording's file is there instead."""
    assert schema_json({"maximum": 10**400}) == ""
