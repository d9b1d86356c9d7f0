"""Which folders hold a session in several files, and how they become one archive."""

import zipfile

from guard_core.recordings.reading.folders import pack, session_folders, sessions_in
from guard_core.recordings.reading.limits import Limits

KIMI = ["w/s1/context.jsonl", "w/s1/context_1.jsonl", "w/s1/subagents/a1/context.jsonl", "w/s1/wire.jsonl"]
VIBE = ["v/CURRENT", "v/chunks/0a.json", "v/journal/01.jsonl", "v/meta.json"]
OTHERS = ["w/s1/state.json", "w/s1/subagents/a1/meta.json", "w/rollout.jsonl", "v/scheduled-loops.json"]


def test_a_session_in_several_files_is_known_by_its_folder():
    assert session_folders([*OTHERS, *VIBE, *KIMI]) == {"v": VIBE, "w/s1": KIMI}


def test_sub_agents_of_kimi_code_and_the_log_of_an_older_mistral_vibe_belong_to_their_sessions():
    kimi = ["k/agents/a7/wire.jsonl", "k/agents/main/wire.jsonl"]
    vibe = ["v/meta.json", "v/messages.jsonl"]
    assert session_folders([*kimi, *vibe, "k/state.json"]) == {"k": kimi, "v": sorted(vibe)}
    assert session_folders(["k/agents/main/wire.jsonl", "k/state.json"]) == {}


def test_events_and_state_of_openhands_are_one_conversation():
    name = "events/event-00000-6d69e577-2244-4feb-9626-1611df0a59a5.json"
    paths = ["c/c7/base_state.json", f"c/c7/{name}"]
    assert session_folders([*paths, "c/c7/hooks.json", "c/c7/events/.eventlog.lock"]) == {"c/c7": paths}
    assert session_folders(paths[1:]) == {}


def test_a_conversation_of_gptme_is_one_with_the_views_that_compactions_left():
    paths = ["g/conversation.jsonl", "g/views/compacted-001.jsonl"]
    others = ["g/compaction.jsonl", "g/events.jsonl", "g/views/pre-compact-001.jsonl", "h/conversation.jsonl"]
    assert session_folders([*paths, *others]) == {"g": paths}


def test_a_file_alone_is_read_by_itself():
    assert session_folders(["s/context.jsonl", "t/wire.jsonl", "u/CURRENT"]) == {}


def test_the_folder_that_was_named_may_be_the_sessions_own():
    assert session_folders(["context.jsonl", "wire.jsonl", "notes.md"]) == {"": ["context.jsonl", "wire.jsonl"]}


def test_two_sessions_beside_each_other_are_two():
    paths = [f"s{number}/{name}.jsonl" for number in "12" for name in ("context", "wire")]
    assert session_folders(paths) == {"s1": paths[:2], "s2": paths[2:]}


def test_the_same_folder_gives_the_same_bytes(tmp_path):
    folder = tmp_path / "s1"
    folder.mkdir()
    for name in ("wire.jsonl", "context.jsonl"):
        (folder / name).write_text(name)
    (folder / "notes.md").write_text("no")
    wanted = [folder / "wire.jsonl", folder / "context.jsonl"]
    archives = [tmp_path / "a.zip", tmp_path / "b.zip"]
    for archive in archives:
        pack(folder, archive, Limits(), wanted)
        wanted.reverse()
    assert archives[0].read_bytes() == archives[1].read_bytes()
    assert zipfile.ZipFile(archives[0]).namelist() == ["s1/context.jsonl", "s1/wire.jsonl"]


def test_the_files_of_a_session_are_walked_as_one(tmp_path):
    for place in ("a.jsonl", "s1/context.jsonl", "s1/state.json", "s1/wire.jsonl"):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text("{}")
    assert [path.relative_to(tmp_path).as_posix() for path in sessions_in(tmp_path)] == [
        "a.jsonl",
        "s1",
        "s1/state.json",
    ]
