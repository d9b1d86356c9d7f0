"""Errors of providers: which of them say that a request was longer than the window, and the sizes that they state."""

from __future__ import annotations

import pytest

from guard_core.recordings.reading.refusals import names_length, stated_sizes


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
        "Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        "The decoder prompt (length 33000) is longer than the maximum model length of 32768.",
        "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000 tokens.",
        '{"code": "1261", "message": "Prompt exceeds max length"}',
        "litellm.ContextWindowExceededError: Context Window exceeded for given call.",
        "Cannot truncate: the number of tokens to keep from the initial prompt is greater than the context length",
        "400 prompt token count of 130512 exceeds the limit of 128000",
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
        "The number of requests exceeds the limit of 50 per minute",
        "Error in the context of this request",
        "",
    ],
)
def test_other_errors_are_not(words):
    assert not names_length(words)


@pytest.mark.parametrize(
    ("words", "tokens", "limit"),
    [
        ('400 {"error":{"message":"prompt is too long: 212345 tokens > 200000 maximum"}}', 212_345, 200_000),
        ("input length and `max_tokens` exceed context limit: 190000 + 32000 > 200000, decrease", 190_000, 200_000),
        ("Range of input length should be [1, 258048]", 0, 258_048),
        (
            "This model's maximum context length is 128000 tokens. However, your messages resulted in 130001 tokens.",
            130_001,
            128_000,
        ),
        (
            "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens (66000 in the "
            "messages, 4000 in the completion).",
            66_000,
            65_536,
        ),
        (
            "This endpoint's maximum context length is 131072 tokens. However, you requested about 150000 tokens "
            "(140000 of text input, 10000 in the output).",
            140_000,
            131_072,
        ),
        ("This model's maximum context length is 32768 tokens. However, you requested 33000 tokens.", 0, 32_768),
        (
            "'max_tokens' is too large: 5000. This model's maximum context length is 32768 tokens and your request has "
            "30000 input tokens.",
            30_000,
            32_768,
        ),
        ("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000", 0, 0),
        (
            "Input tokens exceed the configured limit of 272,000 tokens. Your messages resulted in 300,000 tokens.",
            300_000,
            272_000,
        ),
        ("This model's maximum prompt length is 131072 but the request contains 140000 tokens.", 140_000, 131_072),
        (
            "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
            1_200_000,
            1_048_576,
        ),
        ("The input token count exceeds the maximum number of tokens allowed 1048576.", 0, 1_048_576),
        ("400 prompt token count of 130512 exceeds the limit of 128000", 130_512, 128_000),
        ("Input length 265330 exceeds the maximum allowed input length of 262144 tokens.", 265_330, 262_144),
        ("Input length (265330) exceeds model's maximum context length (262144).", 265_330, 262_144),
        ("Requested token count exceeds the model's maximum context length of 131072 tokens", 0, 131_072),
        ("The input (140000 tokens) is longer than the model's context length (131072 tokens).", 140_000, 131_072),
        ("Prompt has 140,000 tokens, but the configured context size is 131,072 tokens", 140_000, 131_072),
        ("request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it", 5_000, 4_096),
        ("Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum", 40_000, 32_768),
        ("The decoder prompt (length 33000) is longer than the maximum model length of 32768.", 33_000, 32_768),
        ("Your request exceeded model token limit: 262144 (requested: 270000)", 0, 262_144),
        ("invalid params, context window exceeds limit (2013)", 0, 0),
        ("prompt is too long: 9 tokens > 99999999999999 maximum", 0, 0),
        ("prompt is too long", 0, 0),
    ],
)
def test_the_sizes_that_a_refusal_states_are_read_the_prompts_without_the_room_for_an_answer(words, tokens, limit):
    assert stated_sizes(words) == (tokens, limit)
