"""The recorded vectors are met exactly, and a figure that was altered is found."""

import json
from pathlib import Path

import pytest

from guard_core.__main__ import main
from guard_core.conformance import FORMATS, check_file

VECTORS = Path(__file__).parents[1] / "vectors" / "contextguard"
FILES = sorted(VECTORS.rglob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_vector_is_equal(path):
    outcome = check_file(path)
    assert outcome.problem == ""
    assert [str(difference) for verdict in outcome.verdicts for difference in verdict.differences] == []
    assert all(verdict.figures for verdict in outcome.verdicts)


def altered(tmp_path, name, change):
    """A copy of a vector file with one figure changed, and the first difference found in it."""
    data = json.loads((VECTORS / name).read_text())
    change(data)
    path = tmp_path / "altered.json"
    path.write_text(json.dumps(data))
    return next(difference for verdict in check_file(path).verdicts for difference in verdict.differences)


def column(data, name):
    return data["step_fields"].index(name)


TRACE = "Brutal_8k_SequentialToolChain.json"
COLUMNS = json.loads((VECTORS / TRACE).read_text())["step_fields"]


@pytest.mark.parametrize("name", COLUMNS)
def test_it_finds_an_altered_step_in_every_column(tmp_path, name):
    def change(data):
        row = data["runs"][1]["simulations"][0]["steps"][30]
        old = row[column(data, name)]
        fresh = "other" if isinstance(old, str) else not old if isinstance(old, bool) else None
        row[column(data, name)] = [[0] * 7] if isinstance(old, list) else fresh if fresh is not None else old + 1

    difference = altered(tmp_path, TRACE, change)
    assert (difference.where, difference.column) == ("step 30", name)


@pytest.mark.parametrize(
    "key",
    ["turns", "sim_compactions", "max_real_tokens", "overflowed", "final_event_tokens", "loop_detected", "failed"],
)
def test_it_finds_an_altered_result(tmp_path, key):
    def change(data):
        result = data["runs"][0]["simulations"][0]["result"]
        result[key] = not result[key] if isinstance(result[key], bool) else result[key] + 1

    assert altered(tmp_path, TRACE, change).column == key


def test_it_finds_an_altered_event_count(tmp_path):
    def change(data):
        data["simulations"][0]["events"][7][2] += 1

    assert altered(tmp_path, TRACE, change).where == "event 7"


def test_it_finds_a_missing_step(tmp_path):
    def change(data):
        data["runs"][0]["simulations"][0]["steps"].pop()

    assert altered(tmp_path, TRACE, change).column == "number of steps"


def test_it_finds_an_altered_attempt(tmp_path):
    def change(data):
        data["runs"][1]["steps"][-1][column(data, "attempts")][2][6] += 1

    assert altered(tmp_path, "scripted/threshold_empty_summary.json", change).column == "attempts"


def test_it_finds_an_altered_message_sent(tmp_path):
    def change(data):
        data["runs"][0]["steps"][4][column(data, "contents_after")][1] = 6

    assert altered(tmp_path, "scripted/sliding_tools_maxturns6.json", change).column == "contents_after"


@pytest.mark.parametrize("key", ["tokens_after", "contents_after", "old_messages", "summary_bytes", "fits", "passes"])
def test_it_finds_an_altered_single_shot(tmp_path, key):
    def change(data):
        value = data["rows"][0][key]
        data["rows"][0][key] = [*value, value[0]] if key == "passes" else (not value if key == "fits" else value + 1)

    assert altered(tmp_path, "singleshot.json", change).column == key


def test_constants_of_the_file_count_and_not_the_label(tmp_path):
    def change(data):
        data["runs"][1]["constants"]["default_factor"] = 2.0

    assert altered(tmp_path, "Stress_8k_NoUsageMetadata.json", change).column == "correction"


BROKEN = {
    "empty": (b"", "not a whole vector file"),
    "text": (b"hello", "not a whole vector file"),
    "array": (b"[]", "Expected `object`"),
    "other": (b'{"format":"something/1"}', "known are contextguard-trace/1"),
    "missing": (b'{"format":"contextguard-trace/1"}', "missing required field"),
    "huge": (b'{"format":"contextguard-function/1","function":"buffer","cases":{"both":[{"window":1e300}]}}', "case 0"),
    "function": (b'{"format":"contextguard-function/1","function":"nope","cases":{"both":[]}}', "no function"),
}


@pytest.mark.parametrize(("data", "sentence"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_file_is_told_in_a_sentence(tmp_path, capsys, data, sentence):
    path = tmp_path / "broken.json"
    path.write_bytes(data)
    assert main(["conformance", str(path)]) == 2
    assert sentence in capsys.readouterr().out


def test_the_command_tells_equal_and_exits_with_0(capsys):
    assert main(["conformance", str(VECTORS)]) == 0
    out = capsys.readouterr().out
    assert "Stress_200k_KubeAgent.json current: equal" in out
    assert f"{len(FILES)} files" in out


def test_the_command_exits_with_1_at_a_difference(tmp_path, capsys):
    data = json.loads((VECTORS / "functions/buffer.json").read_text())
    data["cases"]["early"][3]["threshold"] = 180_000
    (tmp_path / "b.json").write_text(json.dumps(data))
    assert main(["conformance", str(tmp_path)]) == 1
    assert "case 3, threshold: expected 180000, got 160000" in capsys.readouterr().out


def test_all_four_formats_are_known():
    assert {json.loads(path.read_text())["format"] for path in FILES} == set(FORMATS)


def test_every_difference_of_a_file_is_told_and_those_beyond_20_are_counted(tmp_path, capsys):
    data = json.loads((VECTORS / TRACE).read_text())
    heuristic = column(data, "h_built")
    steps = [row for run in data["runs"] for simulation in run["simulations"] for row in simulation["steps"]]
    for row in steps:
        row[heuristic] += 1
    (tmp_path / "altered.json").write_text(json.dumps(data))

    assert main(["conformance", str(tmp_path)]) == 1

    *rows, total = capsys.readouterr().out.splitlines()
    assert sum("h_built: expected" in line for line in rows) == 20
    counted = sum(int(line.split()[-3]) for line in rows if line.endswith("more differences"))
    assert 20 + counted == len(steps)
    assert f"{len(steps)} differences" in total.replace(",", "").replace("\u202f", "")


def test_a_todo_keeps_its_empty_status(tmp_path):
    case = {"state": [{"content": "Deploy"}], "loaded": [{"content": "Deploy", "status": ""}]}
    path = tmp_path / "todos.json"
    path.write_text(json.dumps({"format": "contextguard-function/1", "function": "todos", "cases": {"both": [case]}}))
    assert check_file(path).equal
    case["loaded"][0].pop("status")
    path.write_text(json.dumps({"format": "contextguard-function/1", "function": "todos", "cases": {"both": [case]}}))
    assert not check_file(path).equal
