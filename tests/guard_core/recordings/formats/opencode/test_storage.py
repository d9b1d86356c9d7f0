"""OpenCode's folder storage: sessions put together from their files are the exports that OpenCode would write."""

import json
from pathlib import Path

import pytest

from guard_core import recordings
from guard_core.errors import DamagedRecording
from guard_core.recordings.formats.opencode.storage import Storage, is_storage

SESSION = {
    "id": "ses_1",
    "title": "a title",
    "directory": "/x",
    "version": "1.0.0",
    "time": {"created": 1, "updated": 2},
}


def message(number: int, role: str, **more: object) -> dict[str, object]:
    name = f"msg_{number}"
    return {"id": name, "sessionID": "ses_1", "role": role, "time": {"created": number}, **more}


def part(number: int, owner: int, **more: object) -> dict[str, object]:
    return {"id": f"prt_{number}", "messageID": f"msg_{owner}", "sessionID": "ses_1", **more}


MESSAGES = [message(1, "user"), message(2, "assistant", modelID="m", providerID="p")]
TOKENS = {"input": 90, "output": 5, "reasoning": 0, "cache": {"read": 10, "write": 0}}
PARTS = [
    part(1, 1, type="text", text="do it"),
    part(2, 2, type="step-start"),
    part(3, 2, type="text", text="done"),
    part(4, 2, type="step-finish", reason="stop", cost=0, tokens=TOKENS),
]


@pytest.fixture(params=["with projects", "with info"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    folder = tmp_path / "storage"
    old = request.param == "with info"
    base = folder / "session" if old else folder
    write(folder / "session" / ("info" if old else "project1") / "ses_1.json", SESSION)
    for item in reversed(MESSAGES):
        write(base / "message" / "ses_1" / f"{item['id']}.json", item)
    for item in reversed(PARTS):
        owner = Path("ses_1", str(item["messageID"])) if old else Path(str(item["messageID"]))
        write(base / "part" / owner / f"{item['id']}.json", item)
    return folder


def write(path: Path, value: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2))


def test_a_session_reads_as_its_export_does(storage: Path) -> None:
    whole = {"info": SESSION, "messages": [
        {"info": item, "parts": [each for each in PARTS if each["messageID"] == item["id"]]} for item in MESSAGES
    ]}  # fmt: skip
    opened = Storage.of(storage)
    (named,) = opened.sessions
    put_together = recordings.read(opened.export(named), strict=True)
    exported = recordings.read(json.dumps(whole).encode(), strict=True)
    assert put_together.facts == exported.facts
    assert put_together.sessions == exported.sessions
    assert put_together.facts.prompt_tokens_sum == 100


def test_the_folder_is_known_by_its_name_and_its_sessions(storage: Path, tmp_path: Path) -> None:
    assert is_storage(storage)
    assert not is_storage(tmp_path)
    assert not is_storage(storage / "session")


def test_the_key_of_a_shared_session_is_no_session(storage: Path) -> None:
    write(storage / "session" / "share" / "ses_1.json", {"secret": "s", "url": "u"})
    (named,) = Storage.of(storage).sessions
    assert "share" not in named


def test_a_file_is_nested_as_deep_as_the_export_may_be(storage: Path, tmp_path: Path) -> None:
    more = json.loads("[" * 123 + '"[{[{"' + "]" * 123)
    next(storage.rglob("prt_2.json")).write_text(json.dumps(part(2, 2, type="step-start", more=more)))
    (tmp_path / "export.json").write_bytes(Storage.of(storage).export(Storage.of(storage).sessions[0]))
    assert len(recordings.read(tmp_path / "export.json").sessions[0].events) == 2


def test_a_damaged_file_is_named(storage: Path) -> None:
    damaged = next(storage.rglob("prt_3.json"))
    damaged.write_text("{")
    opened = Storage.of(storage)
    with pytest.raises(DamagedRecording, match=r"msg_2/prt_3\.json"):
        opened.export(opened.sessions[0])


@pytest.mark.parametrize(
    ("damage", "what"),
    [("{", "holds no JSON value"), *(("[" * depth + "]" * depth, "is nested too deeply") for depth in (125, 200_000))],
)
def test_a_damaged_file_can_be_left_out(storage: Path, tmp_path: Path, damage: str, what: str) -> None:
    next(storage.rglob("prt_2.json")).write_text(damage)
    opened, left = Storage.of(storage), []
    (tmp_path / "export.json").write_bytes(opened.export(opened.sessions[0], left.append))
    read = recordings.read(tmp_path / "export.json", strict=False)
    assert left == [f"the file msg_2/prt_2.json {what}"]
    assert [event.role for event in read.sessions[0].events] == ["user", "model"]
    assert read.sessions[0].calls[0].prompt_tokens == 100
