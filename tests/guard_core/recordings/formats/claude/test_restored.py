"""The files that Claude Code attaches again after a compaction follow from those it used last."""

import pytest

from guard_core.recordings.formats.claude.restored import LARGEST_CHARS, LINE_CHARS, UsedFile, UsedFiles, used_file
from tests.guard_core.recordings.formats.claude.test_transcript import (
    SUMMARY,
    answer,
    attachment,
    boundary,
    call,
    result,
    session,
    user,
)


def used(*files: UsedFile) -> UsedFiles:
    """Files used in this order."""
    all_files = UsedFiles()
    for file in files:
        all_files.use(file)
    return all_files


def file_read(path="a.py", content="x" * 100, lines=10, total=10):
    return {"type": "text", "file": {"filePath": path, "content": content, "numLines": lines, "totalLines": total}}


def test_a_file_that_was_read_has_its_size():
    assert used_file(file_read()) == UsedFile("a.py", 100, 10)


def test_a_part_that_was_read_stands_for_the_whole_file():
    assert used_file(file_read(total=40)) == UsedFile("a.py", 400, 40)


def test_a_file_that_was_written_or_edited_has_its_new_size():
    written = {"type": "create", "filePath": "a.py", "content": "one\ntwo", "originalFile": None}
    edited = {"filePath": "a.py", "oldString": "two", "newString": "second", "originalFile": "one\ntwo"}
    assert used_file(written) == UsedFile("a.py", 7, 2)
    assert used_file(edited) == UsedFile("a.py", 10, 2)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "text",
        {"filePath": "a.py"},
        {"file": {"filePath": 3}},
        {"file": []},
        {"filePath": [], "content": ""},
        {"stdout": "a"},
    ],
)
def test_other_results_are_about_no_file(value):
    assert used_file(value) is None


def test_counts_that_are_no_numbers_are_passed_over():
    assert used_file(file_read(lines="x", total=-4)) == UsedFile("a.py", 100, 1)


def test_the_last_five_files_are_attached_again_each_once():
    files = used(*(UsedFile(f"{number}.py", 100 * number, 0) for number in (1, 2, 3, 4, 5, 6, 7, 7)))
    assert files.restore() == 100 * (3 + 4 + 5 + 6 + 7)


def test_of_a_file_that_is_too_large_nothing_is_attached_though_it_counts_as_one_of_the_five():
    small = [UsedFile(f"{number}.py", 100, 1) for number in range(5)]
    assert used(*small, UsedFile("large.py", LARGEST_CHARS + 1, 1)).restore() == 4 * (100 + LINE_CHARS)


def test_the_agents_own_notes_are_no_used_files():
    assert used(UsedFile("/home/u/CLAUDE.md", 100, 1)).restore() == 0


def test_a_compaction_forgets_the_files_that_it_does_not_attach():
    files = used(*(UsedFile(f"{number}.py", 100, 0) for number in range(9)), UsedFile("large.py", LARGEST_CHARS + 1, 0))
    assert [files.restore(), files.restore()] == [400, 400]


def compacted(*attached):
    return session(
        user("u1", None),
        answer("a1", "u1", call("c1")),
        user("u2", "a1", result("c1"), toolUseResult=file_read()),
        answer("a2", "u2"),
        boundary("b", "a2"),
        *attached,
        user("s", attached[-1]["uuid"] if attached else "b", SUMMARY, isCompactSummary=True),
        answer("a3", "s"),
    )


def test_a_compaction_says_how_much_was_attached_again():
    (compaction,) = compacted().compactions
    assert compaction.restored_chars == 100 + 10 * LINE_CHARS


def test_files_that_the_recording_holds_are_not_counted_again():
    line = attachment("f", "b", {"type": "file", "content": {"file": {"filePath": "a.py", "content": "x" * 100}}})
    (compaction,) = compacted(line).compactions
    assert compaction.restored_chars is None
