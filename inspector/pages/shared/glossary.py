"""What each term means, in one place: the help page prints it and labels of pages link to it."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.text import slugify


class Term(NamedTuple):
    """A term and its meaning; `labels` are the other names under which pages show it."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Its id on the help page."""
        return f"term-{slugify(self.name)}"


GLOSSARY = (
    Term("session", "One conversation with an agent: the log of its messages and its model calls."),
    Term("step", "One model call. Steps count from 1."),
    Term("turn", "From one message of the user to the next one."),
    Term("message", "One entry of the log: the user's words, the model's answer, the result of a tool."),
    Term("context window", "The most tokens that the model accepts in one request.", ("window",)),
    Term(
        "prompt tokens",
        "Tokens of a request. Recorded: reported by the provider. Modelled: of a request that was never sent.",
        ("last prompt tokens", "last reported prompt tokens"),
    ),
    Term(
        "heuristic estimate",
        "A policy's own estimate of a request; in ContextGuard its bytes divided by 4.",
        ("heuristic of the last request",),
    ),
    Term("tokenizer count", "Tokens of a text by tiktoken (o200k_base or cl100k_base): a second opinion."),
    Term(
        "correction factor",
        "Recorded prompt tokens divided by the heuristic estimate of the same request, kept within limits.",
    ),
    Term(
        "calibrated estimate",
        "The larger of the recorded prompt tokens and the heuristic estimate times the "
        "correction factor: what ContextGuard compares with the threshold.",
    ),
    Term(
        "attributed tokens",
        "Recorded prompt tokens shared out to single messages; what is left over is shown as the residual.",
    ),
    Term("threshold", "A policy compacts when its count reaches this many tokens."),
    Term("buffer", "Tokens kept free below the context window; the threshold is the window less the buffer."),
    Term("watermark", "The place in the log up to which a summary replaces the messages."),
    Term("compaction", "Messages are summarised, shortened or left out so that the next request is smaller."),
    Term("summary", "The text that a compaction writes in place of messages."),
    Term("overflow", "A request larger than the context window."),
    Term("near miss", "A request just below the context window that was not compacted."),
    Term("policy", "The rule that decides when to compact, and what."),
    Term(
        "replay",
        "The same session under a policy and settings of your choice. From the first step that differs its "
        "prompt tokens are modelled.",
    ),
    Term("sweep", "Many replays over a grid of settings, with a recommended one."),
    Term(
        "own rule",
        "The rule of the agent that wrote the recording, with settings from the file, from its version or inferred.",
    ),
    Term("forecast error", "How far predictions of hidden later counts, made from earlier ones alone, were off."),
)
BY_LABEL = {label: term for term in GLOSSARY for label in (term.name, *term.labels)}
