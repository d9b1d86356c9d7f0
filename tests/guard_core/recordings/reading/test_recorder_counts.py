"""What a recorder says a compaction began at is used only where the calls before it do not contradict it."""

import pytest

from guard_core.events import Role, TextPart
from guard_core.recordings.reading.build import SessionBuilder
from guard_core.sessions import Evidence, RecordedCompaction


def read(*figures, kind="summary", prompts=(90_000, 100_000)):
    """A session whose calls were counted so, and that was compacted at these figures."""
    builder = SessionBuilder("test")
    builder.event(Role.USER, (TextPart("Go on."),))
    for prompt in prompts:
        builder.answer((TextPart("I will."),), call={"prompt_tokens": prompt})
    for tokens in figures:
        at = len(builder.events)
        builder.compaction(RecordedCompaction(at, Evidence.DECLARED, kind, (), trigger="auto", tokens_before=tokens))
    return builder.session().compactions


@pytest.mark.parametrize("tokens", [5, 79_999])
def test_a_figure_far_below_the_last_count_is_not_used_and_the_compaction_says_so(tokens):
    (item,) = read(tokens)
    assert item.tokens_before is None
    assert item.note == f"The recorder's {tokens:,} tokens before it are not used: the call before had 100,000."


@pytest.mark.parametrize("tokens", [80_000, 100_000, 101_500, 850_000])
def test_a_figure_that_the_calls_allow_stays(tokens):
    (item,) = read(tokens)
    assert (item.tokens_before, item.note) == (tokens, "")


def test_a_figure_above_every_window_is_not_used_whatever_the_calls_say():
    (item,) = read(10**12, prompts=(None,))
    assert item.tokens_before is None
    assert item.note.endswith("1,000,000,000,000 tokens before it are not used: no model has a window of so many.")


def test_nothing_is_known_without_a_count_since_the_compaction_before():
    assert [item.tokens_before for item in read(100_500, 7)] == [100_500, 7]
    assert read(5, prompts=(None,))[0].tokens_before == 5


def test_an_edit_keeps_the_figure_by_which_it_counts_as_a_compaction():
    assert read(5, kind="edit")[0].tokens_before == 5
