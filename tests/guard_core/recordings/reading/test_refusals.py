"""Errors of providers: which of them say that a request was longer than the window."""

from __future__ import annotations

import pytest

from guard_core.recordings.reading.refusals import names_length


@pytest.mark.parametrize(
    "words",
    [
        "prompt is too long: 212345 tokens > 200000 maximum",
        "input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000",
        "Input is too long for requested model.",
        "Range of input length should be [1, 258048]",
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
        '{"error": {"code": "context_length_exceeded"}}',
        "Your input exceeds the context window of this model.",
        "the request exceeds the available context size, try increasing it",
        "This model's maximum prompt length is 131072 but the request contains 140000 tokens.",
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        "Invalid request: Your request exceeded model token limit: 262144",
    ],
)
def test_a_prompt_that_does_not_fit_is_named(words):
    assert names_length(words)


@pytest.mark.parametrize(
    "words",
    [
        "Rate limit reached on tokens per min (TPM): Limit 30000, Requested 41000",
        "max_tokens is too large: 64000. This model supports at most 16384 completion tokens",
        "You exceeded your current quota, please check your plan",
        "The file is too large",
        "Error in the context of this request",
        "",
    ],
)
def test_other_errors_are_not(words):
    assert not names_length(words)
