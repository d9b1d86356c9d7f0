"""`python -m guard_core inspect`."""

import json

from guard_core.__main__ import main

LINES = (
    b'{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s",'
    b'"message":{"role":"user","content":"Hi \\u001b[31m"}}\n'
    b'{"type":"assistant","uuid":"a1","parentUuid":"u1","sessionId":"s","message":{"id":"m1","role":"assistant",'
    b'"model":"m","content":[{"type":"text","text":"Hello"}],"usage":{"input_tokens":7,"cache_read_input_tokens":93}}}\n'
)


def inspect(tmp_path, capsys, content, *options):
    file = tmp_path / "recording"
    file.write_bytes(content)
    code = main(["inspect", str(file), *options])
    return code, *capsys.readouterr()


def test_it_prints_the_facts_as_json(tmp_path, capsys):
    code, out, _ = inspect(tmp_path, capsys, LINES, "--json")

    facts = json.loads(out)
    assert code == 0
    assert (facts["format"], facts["model_calls"], facts["prompt_tokens_sum"]) == ("claude-code", 1, 100)


def test_it_prints_the_facts_as_text(tmp_path, capsys):
    code, out, _ = inspect(tmp_path, capsys, LINES)

    assert code == 0
    assert "messages: 2\n" in out


def test_it_says_what_the_window_rests_on(tmp_path, capsys):
    larger = LINES.replace(b'"input_tokens":7', b'"input_tokens":150000')
    _, out, _ = inspect(tmp_path, capsys, larger, "--json")
    _, text, _ = inspect(tmp_path, capsys, larger)

    window = json.loads(out)["sessions"][0]["window"]
    assert (window["value"], window["source"], window["status"]) == (200_000, "assumed", "assumed")
    assert window["at_least"] == 150_093
    assert "window 200,000 tokens (assumed: Claude Code's default; no recorded prompt was larger)" in text


def test_it_answers_what_is_no_recording_with_one_sentence(tmp_path, capsys):
    code, out, error = inspect(tmp_path, capsys, b"Dear diary,\n")

    assert (code, out) == (2, "")
    assert error.count("\n") == 1
    assert "line 1: this is text that begins with 'Dear diary" in error


def test_it_names_line_and_column_of_damage_when_strict(tmp_path, capsys):
    code, _, error = inspect(tmp_path, capsys, LINES + b'{"a":1,"a":2}\n', "--strict")

    assert code == 2
    assert 'line 3, column 8: the key "a" twice in one object' in error
    assert error.rstrip().endswith("Without --strict damaged places are left out and listed")


def test_it_lists_damage_that_it_left_out(tmp_path, capsys):
    code, out, _ = inspect(tmp_path, capsys, LINES + b'{"a":NaN}\n')

    assert code == 0
    assert "line 3, column 6: NaN, which is not a JSON number" in out


def test_it_has_a_sentence_for_a_file_that_is_not_there(capsys):
    assert main(["inspect", "/no/such/file"]) == 2

    assert "not a file that can be read" in capsys.readouterr().err
