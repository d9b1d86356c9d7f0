"""Families of models are known by the model's name, however a recording writes it."""

import pytest

from guard_core.estimation.model_families import (
    CLAUDE_3_TO_4,
    CLAUDE_4_5,
    CLAUDE_4_7,
    GEMINI,
    GLM,
    OPENAI,
    encoding_of,
    family_of,
)


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("claude-sonnet-4-5-20250929", CLAUDE_3_TO_4),
        ("us.anthropic.claude-sonnet-4-20250514-v1:0", CLAUDE_3_TO_4),
        ("claude-3-7-sonnet-20250219", CLAUDE_3_TO_4),
        ("claude-opus-4-1-20250805", CLAUDE_3_TO_4),
        ("claude-haiku-4-5-20251001", CLAUDE_3_TO_4),
        ("claude-opus-4-5-20251101", CLAUDE_4_5),
        ("anthropic/claude-sonnet-4.6", CLAUDE_4_5),
        ("claude-opus-4-6[1m]", CLAUDE_4_5),
        ("anthropic/claude-opus-4.8-fast", CLAUDE_4_7),
        ("claude-opus-4-7", CLAUDE_4_7),
        ("claude-4.7-opus", CLAUDE_4_7),
        ("claude_4_5_opus", CLAUDE_4_5),
        ("Claude Sonnet 4.6", CLAUDE_4_5),
        ("claude-3-5-sonnet", CLAUDE_3_TO_4),
        ("claude-fable-5", CLAUDE_4_7),
        ("claude-sonnet-5", CLAUDE_4_7),
        ("openai/gpt-5.3-codex", OPENAI),
        ("o4-mini", OPENAI),
        ("GPT-4o", OPENAI),
        ("glm-5.2", GLM),
        ("z-ai/glm-4.6", GLM),
        ("gemini-2.5-pro", GEMINI),
        ("google/gemini-3-pro-preview", GEMINI),
    ],
)
def test_a_name_says_its_family(name, family):
    assert family_of(name) is family


@pytest.mark.parametrize("name", ["", "xglm-5", "scripted-model", "solo4-x", "x" * 10_000])
def test_other_names_have_none(name):
    assert family_of(name) is None


@pytest.mark.parametrize(
    ("models", "encoding"),
    [
        (["gpt-5.4"], "o200k_base"),
        (["github-copilot/gpt-4.1"], "o200k_base"),
        (["openai/gpt-4-1"], "o200k_base"),
        (["gpt-oss-120b"], "o200k_base"),
        (["gpt-4-turbo"], "cl100k_base"),
        (["gpt-3.5-turbo"], "cl100k_base"),
        (["", "gpt-5.4", "claude-opus-4-6"], "o200k_base"),
        (["claude-opus-4-6", "gpt-5.4"], ""),
        ([], ""),
    ],
)
def test_text_is_counted_by_the_tokenizer_of_the_first_model_that_is_named(models, encoding):
    assert encoding_of(models) == encoding
