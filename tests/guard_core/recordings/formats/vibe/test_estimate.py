"""Mistral Vibe's own estimate of a request, and how it is compared."""

from __future__ import annotations

import pytest

from guard_core.recordings.formats.vibe.estimate import VibeRequest

ANSWER = {"role": "assistant", "content": "x" * 366}  # 400 bytes with its comma
RESULT = {"role": "tool", "content": "x" * 1_571}  # 1,600
LAST = VibeRequest(bytes=3_991, tools=4)  # 1,000 tokens


def test_it_is_a_quarter_of_the_bytes_as_json_rounded_up_and_one():
    assert LAST.estimate == 1_000
    assert VibeRequest().with_request([RESULT], [], is_whole=True).estimate == 402  # [RESULT]: 1,601 bytes, []: 2
    assert VibeRequest().with_request([{**RESULT, "content": "文" * 524}], [], is_whole=True).estimate == 402


@pytest.mark.parametrize(
    ("prompt", "output", "is_corrected", "pending"),
    [
        (2_000, 10, True, 990),  # 2 times 1,500 tokens are more than 2,010 + 2 times 400
        (2_000, 500, True, 800),  # 2,500 + 2 times 400 are more than 2 times 1,500
        (800, 10, True, 690),  # the correction is 1 at least: 1,500 tokens
        (800, 10, False, 690),
        (2_000, 10, False, 0),  # before 3.0.3 the total, without what is pending
    ],
)
def test_the_count_is_the_larger_of_total_and_estimate(prompt, output, is_corrected, pending):
    last, since = LAST.counted(prompt, output), [ANSWER, RESULT]
    assert last.pending(since, last.with_request(since), is_corrected=is_corrected) == pending


def test_without_the_tools_or_the_providers_counts_there_is_none():
    assert VibeRequest(bytes=100, prompt=1, output=1).pending([], LAST, is_corrected=True) is None
    assert LAST.counted(None, 5) is None
