"""The most tokens that a request allows its answer, in the spelling of each API.

Sources: https://platform.openai.com/docs/api-reference/chat (`max_completion_tokens`, before it `max_tokens`) and
`/responses` (`max_output_tokens`), https://docs.anthropic.com/en/api/messages (`max_tokens`),
https://ai.google.dev/api/generate-content (`generationConfig.maxOutputTokens`; `config` in Google's Python client),
https://github.com/ollama/ollama/blob/main/docs/api.md (`options.num_predict`, negative without a limit).
"""

from __future__ import annotations

from typing import Any

from guard_core.recordings.reading import fields

_NAMES = ("max_completion_tokens", "max_output_tokens", "max_tokens", "maxOutputTokens", "num_predict")
_WITHIN = ("generationConfig", "generation_config", "config", "options", "optional_params", "model_parameters")


def answer_limit(body: dict[str, Any]) -> int:
    """The limit in tokens that a request's body states, whether beside its messages or in its parameters; 0: none."""
    places = (body, *(fields.mapping(body, key) for key in _WITHIN))
    return next((limit for place in places if (limit := fields.first_tokens(place, *_NAMES))), 0)
