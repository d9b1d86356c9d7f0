"""The path of a conversation through the lines of its file."""

import pytest

from guard_core.recordings.formats.claude.tree import Node, main_path

LINES = 300


class Counted(list):
    """Counts the nodes that were taken from it."""

    taken = 0

    def __getitem__(self, index):
        self.taken += 1
        return super().__getitem__(index)


def node(line, parent, kind="assistant"):
    return Node(line, f"n{line}", f"n{parent}" if parent else "", kind, sidechain=False, rooted=True)


@pytest.mark.parametrize("between", ["assistant", "progress"])
def test_copies_below_many_lines_of_another_branch_are_left_out_at_one_look_at_each(between):
    chain = [node(1, 0, "user"), node(2, 1, "user"), *(node(line, line - 1, between) for line in range(3, LINES))]
    copies = [node(LINES + number, LINES - 1) for number in range(LINES)]
    answers = [node(2 * LINES + number, 2 * LINES + number - 1 if number else 1) for number in range(LINES)]
    nodes = Counted([*chain, *copies, *answers])
    pairs = zip(copies, answers, strict=True)
    links = (
        [[each.line for each in (*chain[2:], *copies, *answers)]]
        if between == "assistant"
        else [[copy.line, answer.line] for copy, answer in pairs]
    )
    path = main_path(nodes, links, {})
    assert [each.line for each in path] == [1, *(answer.line for answer in answers)]
    assert nodes.taken < 20 * len(nodes)
