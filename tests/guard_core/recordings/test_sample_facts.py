"""Every sample recording gives exactly the facts that were counted for it independently."""

import json
from pathlib import Path

import msgspec
import pytest

from guard_core.recordings import read

SAMPLES = Path(__file__).parents[3] / "../shared/samples"
INDEX = SAMPLES / "index.json"
FILES = json.loads(INDEX.read_text())["files"] if INDEX.is_file() else []

pytestmark = pytest.mark.skipif(not FILES, reason="../shared/samples is absent")


@pytest.mark.parametrize("entry", FILES, ids=[entry["file"] for entry in FILES])
def test_a_sample_gives_the_counted_facts(entry):
    facts = msgspec.structs.asdict(read(SAMPLES / entry["file"]).facts)

    expected = {name: entry["facts"][name] for name in facts if name in entry["facts"]}

    assert facts == {**facts, **expected, "format": entry["format"]}


def test_there_are_42_samples():
    assert len(FILES) == 42
