"""State keys as an ADK session keeps them: read tolerantly, written back the same."""

import pytest

from guard_core.policies.contextguard.memory import GuardMemory, dump_memory, load_memory


def test_it_reads_what_it_wrote():
    memory = GuardMemory(5, "short", 7, 1_000, 500, 1_200)
    assert load_memory(dump_memory(memory, "agent"), "agent") == memory


def test_agents_of_one_session_do_not_collide():
    state = dump_memory(GuardMemory(watermark=3, summary_text=""), "one") | dump_memory(GuardMemory(watermark=9), "two")
    assert (load_memory(state, "one").watermark, load_memory(state, "two").watermark) == (3, 9)


@pytest.mark.parametrize(
    ("value", "number"), [(42_000.7, 42_000), (99, 99), ("99", 0), (None, 0), (True, 0), (float("nan"), 0), ([], 0)]
)
def test_numbers_are_read_as_the_original_reads_them(value, number):
    assert load_memory({"__context_guard_real_tokens_a": value}, "a").real_tokens == number


def test_a_summary_that_is_no_text_is_none():
    assert load_memory({"__context_guard_summary_a": 5}, "a").summary_bytes == 0
