"""No name of a count or of a tool call is passed over without a word, and no figure is made of what is not a count."""

from __future__ import annotations

import json
import re
from itertools import product

import pytest

from guard_core.errors import DamagedRecording, RecordingError
from guard_core.recordings import FORMATS, read
from guard_core.recordings.reading.known_names import Names
from guard_core.recordings.reading.watch import ObjectWatch
from tests.guard_core.recordings.checks import SAMPLES, lines
from tests.recordings.seeds import SEEDS, database

NAMES = {format_.name: format_.known_names for format_ in FORMATS if format_.known_names is not None}
FIGURES = ("model_calls", "tool_calls", "tool_results", "prompt_tokens_sum")
TEXTS = {name: content for name, content in SEEDS.items() if not content.startswith((b"SQLite", b"PK"))}
SMALL = 130_000  # bytes of a sample that is read often


def samples():
    """The smaller samples that are text, by their names."""
    if not SAMPLES.is_dir():
        return {}
    files = (path for path in SAMPLES.rglob("*.*") if path.suffix in {".json", ".jsonl", ".traj"})
    return {
        str(path.relative_to(SAMPLES)): path.read_bytes()
        for path in sorted(files)
        if path.name != "index.json" and path.stat().st_size < SMALL
    }


FILES = {**TEXTS, **samples()}
# Aider's is Markdown, and the export is strict about every key by itself.
BY_NAME = {name: content for name, content in FILES.items() if not name.startswith(("aider", "compaction-inspector"))}


UNSEEN = (
    "under another name these keys are left out, and no note says so: the watch (reading/watch.py) knows counts by "
    "`counts` and by names with token or usage, parts of tools by names with tool or function, by a `type` among "
    "`kinds`, and by a name and arguments beside each other"
)


def key_of(name: str) -> re.Pattern[bytes]:
    """A key of the file's own objects, not one inside a text."""
    return re.compile(rb'(?<!\\)"' + re.escape(name.encode()) + rb'"(\s*:)')


def misread(content, before, keys, new):
    """The keys whose renaming loses figures without a problem."""
    lost = []
    for key in keys:
        renamed = key_of(key).sub(b'"' + new(key).encode() + rb'"\1', content)
        if renamed == content:
            continue
        try:
            after = read(renamed)
        except RecordingError:
            continue
        fewer = any(getattr(after.facts, name) < getattr(before.facts, name) for name in FIGURES)
        if fewer and after.notes.problem_count <= before.notes.problem_count:
            lost.append(key)
    return lost


@pytest.mark.parametrize("name", BY_NAME)
def test_it_never_loses_figures_under_a_new_name_without_a_problem(name):
    before = read(FILES[name])
    names = NAMES[before.format]
    keys = sorted(names.usage | names.counts | names.beside | names.tools)
    assert misread(FILES[name], before, keys, lambda key: f"{key}_v2") == [], UNSEEN


@pytest.mark.parametrize("name", BY_NAME)
def test_it_knows_an_object_of_counts_or_calls_under_any_name(name):
    before = read(FILES[name])
    names = NAMES[before.format]
    assert misread(FILES[name], before, sorted(names.usage | names.tools), lambda _: "zzz") == [], UNSEEN


def test_it_finds_nothing_strange_in_a_file_that_is_read_whole():
    problems = {(name, problem.message) for name, file in FILES.items() for problem in read(file).notes.problems}
    assert [item for item in problems if "not known here" in item[1] or "counts of tokens" in item[1]] == []


@pytest.mark.parametrize("name", ["name", "tool", "function_name", "tool_name", "toolName"])
def test_a_call_of_a_tool_is_known_by_a_name_and_arguments_beside_each_other(name):
    watch, problems = ObjectWatch(Names()), []
    watch.check({"said": [{name: "ls", "args": {"path": "."}}]}, 7, lambda *problem: problems.append(problem))
    assert [(str(item), item.line) for item in watch.unknown] == [
        ("a tool call or result under a name that is not known here: said, left out", 7)
    ]
    assert problems == []


USAGE = {"prompt_tokens": 900, "completion_tokens": 7}


def log(*usages):
    """A log of chat requests with these usages."""
    ask = {"messages": [{"role": "user", "content": "Hi"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "Yes"}}]}
    return lines(*({"request": ask, "response": {**answer, "id": f"r{n}", "usage": u}} for n, u in enumerate(usages)))


BAD = [-5, True, [1], "many", 1.5, {}, 2**60]


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_strict_reading_refuses_a_bad_count_by_line_value_and_what_is_allowed(bad):
    content = log(USAGE, {**USAGE, "prompt_tokens": bad})
    with pytest.raises(DamagedRecording) as refused:
        read(content, strict=True)
    assert refused.value.line == 2
    assert f"prompt_tokens is {json.dumps(bad, separators=(',', ':'))}, no count of tokens" in refused.value.reason
    assert "allowed are whole numbers from 0 to 9007199254740992, or null" in refused.value.reason
    column = content.splitlines()[1].index(b'"prompt_tokens"') + 1
    assert refused.value.column == column


@pytest.mark.parametrize("bad", BAD, ids=str)
def test_a_lenient_reading_leaves_a_bad_count_out_and_notes_it(bad):
    recording = read(log(USAGE, {**USAGE, "prompt_tokens": bad}))
    assert recording.facts.prompt_tokens_sum == 900
    assert [problem.line for problem in recording.notes.problems] == [2]
    assert "prompt_tokens" in recording.notes.problems[0].message


def test_a_bad_count_of_the_answer_spoils_no_count_of_the_prompt():
    recording = read(log(USAGE, {**USAGE, "completion_tokens": -1}))
    assert recording.facts.prompt_tokens_sum == 1800
    assert recording.notes.problem_count == 1


@pytest.mark.parametrize(("name", "cached"), [("pi", b'"cacheRead": 0'), ("opencode", b'"read": 0')])
def test_a_count_less_its_cached_tokens_may_be_less_than_nothing_but_no_more_than_those(name, cached):
    below = re.sub(rb'"input": ?\d+', b'"input": -20', SEEDS[name])
    with pytest.raises(DamagedRecording, match="input is -20, no count of tokens"):
        read(below, strict=True)
    assert cached in below
    recording = read(below.replace(cached, cached.replace(b"0", b"120")), strict=True)
    assert recording.facts.prompt_tokens_sum == 100
    assert recording.notes.problem_count == 0


COUNTED = [name for name, content in TEXTS.items() if read(content).format in NAMES]


@pytest.mark.parametrize("name", COUNTED)
def test_every_format_tells_a_bad_count_in_both_modes(name):
    names = NAMES[read(TEXTS[name]).format]
    for key, bad in product(names.counts | names.beside, (b"-5", b"true", b"[1]", b'"many"')):
        spoiled = re.sub(rb'(?<!\\)"' + key.encode() + rb'": ?\d+', b'"' + key.encode() + b'": ' + bad, TEXTS[name])
        if spoiled == TEXTS[name]:
            continue
        with pytest.raises(DamagedRecording, match=f"{key} is .*, no count of tokens: allowed are"):
            read(spoiled, strict=True)
        assert any(key in problem.message for problem in read(spoiled).notes.problems)


HERMES = {"id": "s", "model": "m", "system_prompt": None, "parent_session_id": None, "end_reason": None}
HERMES |= {"started_at": 1.0, "input_tokens": 900, "cache_read_tokens": 0, "cache_write_tokens": 0, "api_call_count": 1}
CRUSH = {"id": "s", "parent_session_id": None, "title": "Files", "message_count": 1, "prompt_tokens": 900}
CRUSH |= {"completion_tokens": 20, "created_at": 1, "summary_message_id": None}
SAID = {"tool_calls": None, "tool_call_id": None, "tool_name": None, "timestamp": 1.0, "active": 1, "compacted": 0}
ROWS = {
    "Hermes": (HERMES, {"session_id": "s", "role": "user", "content": "Hi", **SAID}, "input_tokens"),
    "Crush": (
        CRUSH,
        {
            "id": "m",
            "session_id": "s",
            "role": "user",
            "parts": '[{"type":"text","data":{"text":"Hi"}}]',
            "created_at": 1,
        },
        "prompt_tokens",
    ),
}


@pytest.mark.parametrize("bad", [-5, "many"])
@pytest.mark.parametrize("name", ROWS)
def test_a_bad_count_in_a_column_of_a_database_is_told_in_both_modes(name, bad):
    session, message, column = ROWS[name]
    content = database({"sessions": [{**session, column: bad}], "messages": [message]})
    with pytest.raises(DamagedRecording, match=f"{column} of a session's row is .*, no count of tokens: allowed are"):
        read(content, strict=True)
    [problem] = read(content).notes.problems
    assert column in problem.message


def test_a_bad_count_in_a_response_that_is_kept_as_text_is_told_in_both_modes():
    ask = {"messages": [{"role": "user", "content": "Hi"}]}
    answer = {"choices": [{"message": {"role": "assistant", "content": "Yes"}}], "usage": {"prompt_tokens": -5}}
    content = lines(*[{"request": ask, "response": json.dumps(answer)}] * 2)
    with pytest.raises(DamagedRecording, match="line 1: prompt_tokens of a response is -5, no count of tokens"):
        read(content, strict=True)
    assert read(content).notes.problem_count == 2


def test_an_unknown_name_is_told_once_with_its_first_line_and_the_number_of_places():
    recording = read(log(USAGE, {**USAGE, "cache_hits": 3}, {**USAGE, "cache_hits": 4}))
    [problem] = recording.notes.problems
    assert problem.line == 2
    assert "response.usage.cache_hits, 2 places" in problem.message or "usage.cache_hits, 2 places" in problem.message


def test_a_strict_reading_stops_where_all_counts_stand_under_unknown_names():
    with pytest.raises(DamagedRecording, match="line 1: counts of tokens under a name that is not known here"):
        read(log({"promptCount": 900}, {"promptCount": 901}), strict=True)


def test_an_attribute_of_a_span_under_a_new_name_is_told():
    span = SEEDS["otlp"].replace(b"gen_ai.usage.input_tokens", b"gen_ai.usage.sent_tokens")
    assert span != SEEDS["otlp"]
    assert any("gen_ai.usage.sent_tokens" in problem.message for problem in read(span).notes.problems)


def test_what_tools_are_given_may_hold_any_names():
    call = {"type": "tool_use", "id": "t", "name": "count", "input": {"usage": {"zzz_tokens": 5}, "tool_calls": [{}]}}
    talk = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": [call]}]
    assert read(json.dumps(talk).encode()).notes.problem_count == 0
