"""The name of a model together with the service that serves it, where that gives the model a window of its own."""

from __future__ import annotations

from guard_core.windows.subscriptions import PREFIX as SUBSCRIPTION_PREFIX
from guard_core.windows.subscriptions import SERVICE as SUBSCRIPTION

# The prefix of each service, by what agents call it as a provider. GitHub Copilot: pi and OpenCode (`github-copilot`,
# with `-enterprise` behind it for a company's own server) and Crush (`copilot`); it offers the models of others, most
# with smaller windows than their makers', and the table of models knows it. A subscription to ChatGPT: pi. What other
# providers serve has its maker's window, so their names are not needed.
_PREFIXES = {
    **dict.fromkeys(("github-copilot", "github-copilot-enterprise", "copilot"), "github-copilot/"),
    SUBSCRIPTION: SUBSCRIPTION_PREFIX,
}


def served_model(provider: str, model: str) -> str:
    """A model's name, behind that of the service where the provider is one that has windows of its own."""
    if not model or "/" in model:
        return model
    return f"{_PREFIXES[provider]}{model}" if provider in _PREFIXES else model
