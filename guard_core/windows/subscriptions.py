"""Windows of models that a subscription to ChatGPT serves, which pi calls the provider `openai-codex`, and so do we.

The service takes smaller requests than OpenAI's API. Source: the models of that provider in pi's own table, read in
twelve versions (pi-ai 0.48.0 to 1.6.0).
"""

from __future__ import annotations

SERVICE = "openai-codex"
PREFIX = f"{SERVICE}/"
NOTE = "{} of a subscription to ChatGPT, in pi's table of models"
_USUAL, _SMALL = 272_000, 128_000  # tokens: of all its models up to 6.1, and of the small fast one
_EARLIER = 372_000  # tokens: of GPT-5.6 in 0.80.6 to 0.80.10, where it then was new
_LATER = 500_000  # tokens: of GPT-6.1 from 1.3.0 on (272,000 in 0.99.1), and of 6.2 Sol
_WINDOWS: dict[str, tuple[int, ...]] = {  # the newest first
    **dict.fromkeys(("gpt-5.1", "gpt-5.1-codex-max", "gpt-5.1-codex-mini", "gpt-5.2", "gpt-5.2-codex"), (_USUAL,)),
    **dict.fromkeys(("gpt-5.3-codex", "gpt-5.4", "gpt-5.4-mini", "gpt-5.5"), (_USUAL,)),
    **dict.fromkeys(("gpt-6-astra", "gpt-6-luna", "gpt-6-sol", "gpt-6.2-astra"), (_USUAL,)),
    "gpt-5.3-codex-spark": (_SMALL,),
    **dict.fromkeys(("gpt-5.6-luna", "gpt-5.6-sol", "gpt-5.6-terra"), (_USUAL, _EARLIER)),
    "gpt-6.1-sol": (_LATER, _USUAL),
    **dict.fromkeys(("gpt-6.1-terra", "gpt-6.2-sol"), (_LATER,)),
}


def subscription_windows(model: str) -> tuple[int, ...]:
    """The windows in tokens that a model has had there, the newest first; none for one that is served otherwise."""
    return _WINDOWS.get(model[len(PREFIX) :].lower(), ()) if model.startswith(PREFIX) else ()
