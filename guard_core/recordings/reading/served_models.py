"""The name of a model together with the service that serves it, where that gives the model a window of its own."""

from __future__ import annotations

# GitHub Copilot, as agents call it as a provider: pi and OpenCode (`github-copilot`, with `-enterprise` behind it for a
# company's own server) and Crush (`copilot`). It offers the models of others, most with smaller windows than their
# makers'. What other providers serve has its maker's window, so their names are not needed.
_COPILOT = ("github-copilot", "github-copilot-enterprise", "copilot")
_PREFIX = "github-copilot/"  # as the table of models knows it


def served_model(provider: str, model: str) -> str:
    """A model's name, behind that of the service where the provider is one that has windows of its own."""
    return f"{_PREFIX}{model}" if model and "/" not in model and provider in _COPILOT else model
