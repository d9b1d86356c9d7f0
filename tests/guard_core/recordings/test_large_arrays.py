"""An array that is read element by element is the same recording as one that is parsed as a whole, in every format."""

import json
from cProfile import Profile
from typing import Any

import pytest

from guard_core import recordings
from guard_core.errors import RecordingError
from guard_core.recordings.reading import json_array
from tests.profiling import calls_of
from tests.recordings.seeds import SEEDS


def arrays(content: bytes) -> list[bytes]:
    """The arrays that a recording makes: itself, its lines as elements, itself as the only element and twice."""
    try:
        value = json.loads(content)
    except ValueError:
        value = None
    if value is None:
        try:
            items = [json.loads(line) for line in content.splitlines() if line.strip()]
        except ValueError:
            return []
        return [json.dumps(items).encode()]
    listed = [value] if isinstance(value, list) else []
    return [json.dumps(each, ensure_ascii=False).encode() for each in (*listed, [value], [value, value])]


CASES = {f"{name} {number}": each for name, seed in SEEDS.items() for number, each in enumerate(arrays(seed))}


def outcome(content: bytes, shelve_from: int, *, strict: bool) -> Any:
    try:
        return recordings.read(content, strict=strict, shelve_from=shelve_from)
    except RecordingError as error:
        return type(error), error.reason, error.line, error.column


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("content", CASES.values(), ids=CASES)
def test_a_large_array_is_the_same_recording(content: bytes, strict: bool) -> None:
    assert outcome(content, 0, strict=strict) == outcome(content, len(content) + 1, strict=strict)


def test_most_formats_have_arrays() -> None:
    """Else nothing would be compared."""
    read = [outcome(content, 0, strict=False) for content in CASES.values()]
    assert len({each.format for each in read if isinstance(each, recordings.Recording)}) > 15


@pytest.mark.parametrize("name", ["chatgpt", "claude-ai", "langchain", "managed-agents", "openai-chat", "otlp"])
def test_a_large_array_is_passed_over_once_to_check_and_once_to_read_it(name: str) -> None:
    """No format takes a pass of its own to say that an array is not its."""
    content, profile = CASES[f"{name} 0"], Profile()
    assert isinstance(profile.runcall(outcome, content, 0, strict=False), recordings.Recording)
    assert calls_of(profile, json_array.elements) == 2 * (len(json.loads(content)) + 1)  # for each element, and the end
