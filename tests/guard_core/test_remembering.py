"""Answers about texts are remembered as far as their texts have few characters."""

from guard_core.remembering import remembered


def counting(most):
    """A function of a text that is remembered, and the texts that it was computed of."""
    computed = []

    @remembered(most)
    def length(text):
        computed.append(text)
        return len(text)

    return length, computed


def test_nothing_is_computed_twice_while_the_texts_are_short():
    length, computed = counting(10)
    assert [length(text) for text in ("aaa", "bbb", "aaa", "bbb")] == [3, 3, 3, 3]
    assert computed == ["aaa", "bbb"]


def test_the_texts_that_were_not_asked_of_for_longest_go_first():
    length, computed = counting(10)
    for text in ("aaaa", "bbbb", "aaaa", "cccc", "aaaa", "bbbb"):
        length(text)
    assert computed == ["aaaa", "bbbb", "cccc", "bbbb"]


def test_one_long_text_leaves_no_other_and_is_remembered_alone():
    length, computed = counting(10)
    for text in ("a", "b" * 100, "b" * 100, "a"):
        length(text)
    assert computed == ["a", "b" * 100, "a"]
