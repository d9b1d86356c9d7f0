"""The files that Claude Code attaches again after a compaction follow from those it used last."""

import pytest

from guard_core.recordings.formats.claude.restored import LARGEST, LINE, SURELY_LARGER, UsedFile, UsedFiles, used_file
from guard_core.tokens.lexical import lexical_tokens
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

TEXT = "\tname := value\n" * 20


def used(*files: UsedFile) -> UsedFiles:
    """Files used in this order."""
    all_files = UsedFiles()
    for file in files:
        all_files.use(file)
    return all_files


def read(path, sent=100):
    return UsedFile(path, sent, sent)


def changed(path, sent=100):
    return UsedFile(path, sent, sent, changed=True)


def file_read(path="a.py", content=TEXT, lines=20, total=20):
    file = {"filePath": path, "content": content, "numLines": lines, "totalLines": total}
    return {"toolUseResult": {"type": "text", "file": file}}


def edited(path="a.py", **result):
    return {"toolUseResult": {"filePath": path, **result}}


def test_a_file_that_was_read_is_sent_as_json_with_numbered_lines():
    file = used_file(file_read())
    assert (file.path, file.tokens, file.changed) == ("a.py", lexical_tokens(TEXT), False)
    assert file.sent == lexical_tokens(TEXT.replace("\n", r"\n").replace("\t", r"\t")) + int(20 * LINE)


def test_a_part_that_was_read_stands_for_the_whole_file():
    assert used_file(file_read(total=80)).tokens == 4 * used_file(file_read()).tokens


def test_a_file_that_was_written_or_edited_has_its_new_size():
    written = used_file(edited(type="create", content=TEXT, originalFile=None))
    grown = used_file(edited(oldString="value", newString="value" * 50, originalFile=TEXT))
    assert written == UsedFile("a.py", lexical_tokens(TEXT), written.sent, changed=True)
    assert grown.tokens - written.tokens == lexical_tokens("value" * 50) - lexical_tokens("value")


def test_a_plan_is_known_by_the_request_to_implement_it_by_its_approval_or_by_its_file():
    plan = UsedFile("", lexical_tokens(TEXT), lexical_tokens(TEXT))
    assert used_file({"planContent": TEXT}) == plan
    assert used_file({"toolUseResult": {"plan": TEXT, "filePath": "/p/.claude/plans/a.md"}}) == plan
    assert used_file(edited("/p/.claude/plans/a.md", content=TEXT)) == plan


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
        {"plan": 3},
    ],
)
def test_other_results_are_about_no_file(value):
    assert used_file({"toolUseResult": value, "planContent": None}) is None


def test_counts_that_are_no_numbers_are_passed_over():
    assert used_file(file_read(lines="x", total=-4)).tokens == lexical_tokens(TEXT)


def test_a_text_that_is_no_unicode_is_counted():
    assert used_file(file_read(content="\ud800")).is_sent


def test_the_last_five_files_are_attached_again_each_once():
    files = used(*(read(f"{number}.py", 100 * number) for number in (1, 2, 3, 4, 5, 6, 7, 7)))
    assert files.restore() == 100 * (3 + 4 + 5 + 6 + 7)


def test_files_that_were_changed_go_before_those_that_were_only_read():
    files = used(
        changed("a.py", 1), changed("b.py", 2), *(read(f"{number}.py") for number in range(4)), read("a.py", 7)
    )
    assert files.restore() == 2 + 7 + 3 * 100


def test_a_file_that_was_read_before_it_was_changed_counts_as_changed_then():
    files = used(*(changed(f"{number}.py") for number in range(5)), read("a.py"), changed("a.py", 7))
    assert files.restore() == 4 * 100 + 7


def test_of_a_file_that_is_too_large_nothing_is_attached_though_it_counts_as_one_of_the_five():
    small = [read(f"{number}.py") for number in range(5)]
    assert used(*small, read("large.py", LARGEST + 1)).restore() == 4 * 100


def test_a_very_long_file_is_too_large_whatever_is_taken_from_it():
    blanks = " " * (SURELY_LARGER + 1)
    assert not used_file(file_read(content=blanks)).is_sent
    assert not used_file(edited(oldString="value " * 500, newString="", originalFile=blanks)).is_sent


def test_the_agents_own_notes_and_its_plan_are_no_used_files():
    assert used(read("/home/u/CLAUDE.md"), read("/home/u/.claude/plans/a.md")).restore() == 0


def test_the_plan_is_attached_besides_the_files_each_time():
    files = used(*(read(f"{number}.py") for number in range(6)), UsedFile("", 30, 30), UsedFile("", 40, 40))
    assert [files.restore(), files.restore()] == [540, 540]


def test_a_compaction_forgets_the_files_that_it_does_not_attach():
    files = used(*(read(f"{number}.py") for number in range(9)), read("large.py", LARGEST + 1))
    assert [files.restore(), files.restore()] == [400, 400]


def compacted(*attached):
    return session(
        user("u1", None),
        answer("a1", "u1", call("c1")),
        user("u2", "a1", result("c1"), **file_read()),
        answer("a2", "u2"),
        boundary("b", "a2"),
        *attached,
        user("s", attached[-1]["uuid"] if attached else "b", SUMMARY, isCompactSummary=True),
        answer("a3", "s"),
    )


def test_a_compaction_says_how_much_was_attached_again():
    (compaction,) = compacted().compactions
    assert compaction.restored_tokens == used_file(file_read()).sent


def test_files_that_the_recording_holds_are_not_counted_again():
    line = attachment("f", "b", {"type": "file", "content": {"file": {"filePath": "a.py", "content": "x" * 100}}})
    (compaction,) = compacted(line).compactions
    assert compaction.restored_tokens is None
