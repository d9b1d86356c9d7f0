"""Families of models that count alike: how many tokens their tokenizer makes of text, and what they leave out."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from guard_core.windows.model_table import LONGEST_NAME, as_its_maker_writes


class ModelFamily(NamedTuple):
    """`level`: tokens of its text by those of Claude up to Opus 4.6. `opaque`: tokens per byte of encrypted reasoning
    that is not shown. `drops_reasoning`: are requests counted without the reasoning of the user's earlier turns.
    `shown`: tokens per lexical token of reasoning that is shown, where that is a summary of what is sent; None: it is
    what is sent. `encoding`: the tokenizer that counts its text, where it is public and among `tokenizer.ENCODINGS`."""

    level: float
    opaque: float
    drops_reasoning: bool
    shown: float | None = None
    encoding: str = ""


# Levels. Source: medians over public recordings, as the tokens of measured intervals by what `ratios` expects.
# Claude up to Opus 4.6: 1.01 to 1.10 in 86; from Opus 4.7 on, which has another tokenizer: 1.38 and 1.32 in six with
# Fable 5 and Sonnet 5, 1.58 in one with Opus 4.8. GPT-5.2 to 5.6: that of tool results is 0.75 and 0.83 in two
# repositories of OpenCode (16 recordings), 0.76 in one of pi (7) and 0.85 in one of Codex CLI (12); of 0.75, 0.80, 0.82
# and 0.85, tried on these, 0.82 has the least errors one and ten calls ahead together. GLM-5.1 and 5.2: 0.84 to 0.96 in
# six of pi. Gemini 2.5 and 3 Pro: 0.94 and 0.85 in two of Gemini CLI.
# Reasoning. Source: Anthropic's documentation of extended thinking (platform.claude.com, "Building with extended
# thinking"): from Opus 4.5 and Sonnet 4.6 on, that of earlier turns is kept. In public recordings of Claude Code the
# first prompt of a turn lacks 1.75 times the reasoning estimated for the turn before with Sonnet 4.5 (median of 31; it
# was estimated at 0.8 tokens per lexical token, and shows only in part), and 0.1 times or less with later models (80).
# Encrypted reasoning. Source: medians of the ratios fitted to the recorded outputs of public recordings whose reasoning
# is hidden, rounded: 0.23 to 0.31 in four with Claude 4.6, 0.35 to 0.38 in four from 4.7 on, 0.07 to 0.18 in 13 with
# GPT-5.3 to 5.5.
# Encodings. Source: the list of models in OpenAI's tiktoken 0.14 (`tiktoken/model.py`); that of gpt-oss has the tokens
# of o200k_base and more special ones. In 61 public recordings of Codex CLI, OpenCode and pi with GPT-5.2 to 5.6 most
# prompts grow by the recorded output, the tokens of results and of users' words by o200k_base, and 7 to 11 a message.
# Shown reasoning. Source: the median of the ratios fitted to 15 of these recordings of OpenCode and pi with GPT-5.2 to
# 5.6; of the other eight, whose one-line headings summarise much that is hidden, none can be fitted.
CLAUDE_3_TO_4 = ModelFamily(1.0, 0.26, drops_reasoning=True)
CLAUDE_4_5 = ModelFamily(1.0, 0.26, drops_reasoning=False)
CLAUDE_4_7 = ModelFamily(1.38, 0.36, drops_reasoning=False)
OPENAI = ModelFamily(0.82, 0.14, drops_reasoning=False, shown=0.3, encoding="o200k_base")
OPENAI_BEFORE_4O = OPENAI._replace(encoding="cl100k_base")
GLM = ModelFamily(0.87, 0.14, drops_reasoning=False)
GEMINI = ModelFamily(0.9, 0.14, drops_reasoning=False)

_FAMILIES = (
    (re.compile(r"claude-(?:fable|mythos|(?:opus|sonnet|haiku)-(?:[5-9]|4[-.][789])(?!\d))"), CLAUDE_4_7),
    (re.compile(r"claude-(?:opus-4[-.][56]|(?:sonnet|haiku)-4[-.]6)(?!\d)"), CLAUDE_4_5),
    (re.compile(r"claude"), CLAUDE_3_TO_4),
    (re.compile(r"(?:^|/)gpt-(?:4(?!-[15](?:-|$))|3[-.]?5)(?:-|$)"), OPENAI_BEFORE_4O),
    (re.compile(r"(?:^|/)(?:gpt-|chatgpt-|codex-|o[134](?:-|$))"), OPENAI),
    (re.compile(r"(?:^|/)glm-\d"), GLM),
    (re.compile(r"(?:^|/)gemini-"), GEMINI),
)


@lru_cache(maxsize=1_024)
def family_of(model: str) -> ModelFamily | None:
    """The family that a model's name says, whatever routers and clouds write in front of it; None for others."""
    name = as_its_maker_writes(model[:LONGEST_NAME])
    return next((family for pattern, family in _FAMILIES if pattern.search(name)), None)


def encoding_of(models: Iterable[str]) -> str:
    """The tokenizer of a session whose calls name these models, "" for none: that of the first that is named, so that
    a session that grows keeps it."""
    family = family_of(next(filter(None, models), ""))
    return family.encoding if family else ""
