"""What each term means, in one place: the help page prints it and labels of pages link to it."""

from __future__ import annotations

from typing import NamedTuple

from django.utils.text import slugify

from inspector.pages.shared.kinds import KINDS


class GlossaryTerm(NamedTuple):
    """A term and its meaning; `labels` are the other names under which pages show it."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Its id on the help page."""
        return f"term-{slugify(self.name)}"


GLOSSARY = (
    GlossaryTerm("session", "One conversation with an agent: the log of its messages and its model calls."),
    GlossaryTerm("step", "One model call. Steps count from 1."),
    GlossaryTerm("turn", "From one message of the user to the next one."),
    GlossaryTerm("message", "One entry of the log: the user's words, the model's answer, the result of a tool."),
    GlossaryTerm("context window", "The most tokens that the model accepts in one request.", ("window",)),
    GlossaryTerm(
        "prompt tokens",
        "Tokens of a request. Recorded: reported by the provider. Modelled: of a request that was never sent.",
        ("last prompt tokens", "last reported prompt tokens"),
    ),
    GlossaryTerm(
        "heuristic estimate",
        "A policy's own estimate of a request; in ContextGuard its bytes divided by 4.",
        ("heuristic of the last request",),
    ),
    GlossaryTerm("tokenizer count", "Tokens of a text by tiktoken (o200k_base or cl100k_base): a second opinion."),
    GlossaryTerm(
        "correction factor",
        "Recorded prompt tokens divided by the heuristic estimate of the same request, kept within limits.",
    ),
    GlossaryTerm(
        "calibrated estimate",
        "The larger of the recorded prompt tokens and the heuristic estimate times the "
        "correction factor: what ContextGuard compares with the threshold.",
    ),
    GlossaryTerm(
        "attributed tokens",
        "Recorded prompt tokens divided among the single messages; what is left over is shown as the residual.",
    ),
    GlossaryTerm("threshold", "A policy compacts when its count reaches this many tokens."),
    GlossaryTerm("buffer", "Tokens kept free below the context window; the threshold is the window minus the buffer."),
    GlossaryTerm("watermark", "The place in the log up to which a summary replaces the messages."),
    GlossaryTerm("compaction", "Messages are summarised, shortened or left out so that the next request is smaller."),
    GlossaryTerm("summary", "The text that a compaction puts in the place of messages."),
    GlossaryTerm("overflow", "A request larger than the context window."),
    GlossaryTerm("near miss", "A request above 90 % of the context window that was not compacted."),
    GlossaryTerm("policy", "A rule that decides when to compact, and what to keep, summarise or remove."),
    GlossaryTerm("profile", "A version or variant of a policy, with default settings of its own."),
    GlossaryTerm(
        "replay",
        "The same session under a policy and settings of your choice. From the first step that differs its "
        "prompt tokens are modelled.",
    ),
    GlossaryTerm("sweep", "Many replays over a grid of settings, with a recommended one."),
    GlossaryTerm(
        "own rule",
        "The rule of the agent that wrote the recording, with settings from the file, from its version or inferred.",
    ),
    GlossaryTerm(
        "forecast error", "How far off predictions were: later counts are hidden and predicted from earlier ones alone."
    ),
)
SOURCES = (
    GlossaryTerm("provider", "Reported by the model's provider for a request that was really sent."),
    GlossaryTerm("recorder", "Written into the file by the program that made the recording."),
    GlossaryTerm("persisted state", "Read from the state that a policy kept in the recording."),
    GlossaryTerm("recomputed", "Computed here from what the file holds."),
    GlossaryTerm("modelled", "What the provider would have reported for a request that was never sent.", ("replayed",)),
    GlossaryTerm("model table", "Looked up by the model's name in a bundled table of windows and prices."),
    GlossaryTerm("recorded prompts", "The only documented window of the model into which the answered prompts fit."),
    GlossaryTerm("user", "Typed in by a person, or chosen in the address of the page."),
    GlossaryTerm("assumed", "A default, because nothing better is known."),
    GlossaryTerm("estimated", "From the texts, because no provider counted them."),
    GlossaryTerm(
        "inferred", "Concluded from what the agent did, or from how its history changed; the file does not say it."
    ),
    GlossaryTerm("declared", "The file has a record of its own for the compaction."),
    GlossaryTerm("matched", "A message has the wording by which the software begins a summary."),
)
VERDICTS = (
    GlossaryTerm("agrees", "The agent's rule fires at this compaction, and at no check since the one before."),
    GlossaryTerm("differs from the rule", "What was kept is not what the agent's rule keeps."),
    GlossaryTerm("early", "The agent compacted below the threshold of its rule."),
    GlossaryTerm("late", "The rule had fired at an earlier check, but the agent did not compact then."),
    GlossaryTerm("other threshold", "All checks fit one threshold, and it is not that of the rule."),
    GlossaryTerm("not modelled", "The rule says nothing about this compaction: a count or a setting is missing."),
    GlossaryTerm("as the rule says", "What was kept, or the change of a threshold, is what the agent's rule says."),
    GlossaryTerm("verbatim", "A message of the log that is sent has the same words."),
    GlossaryTerm("quoted in the summary", "Only what a compaction inserted has the words."),
    GlossaryTerm("paraphrased in the summary", "Only what a compaction inserted says it, in other words."),
    GlossaryTerm(
        "perhaps translated: summary in another language",
        "Only a summary in another language may still say it; its words cannot be compared.",
    ),
    GlossaryTerm(
        "unknown: summary not readable", "Only a summary that is encrypted, or not in the file, may still say it."
    ),
    GlossaryTerm("gone", "Nothing that is sent says it any more."),
    GlossaryTerm("automatic", "The agent compacted by itself, as the file says."),
    GlossaryTerm("manual", "A person asked for the compaction."),
    GlossaryTerm("unknown trigger", "The file does not say who asked for the compaction."),
)
FINDINGS = {
    "window_contradicted": "A prompt larger than the window was answered, so the real window is larger.",
    "window_doubted": "Every automatic compaction came below half of the window: it may be smaller.",
    "overflow": "A request larger than the context window.",
    "refused": "The file has the provider's error for a request that was too long.",
    "refused_again": "A replayed request is as large as one that the provider refused.",
    "late": "The compaction came right after a request over the window had been refused.",
    "counted_over": "The agent itself counted more than the window before it compacted.",
    "no_fit": "What every request holds is over the threshold by itself: no compaction can help.",
    "near_miss": "A request above 90 % of the window that was not compacted.",
    "part_lost": "A compaction took one of several things that the user asked for out of the context, not all.",
    "rule_lost": "A compaction took a rule of the user's out of the context, and no later call of the turn has it.",
    "todo_lost": "A compaction took an open todo of the agent out of the context, and no call since has it.",
    "earlier_rule_lost": "A compaction took a rule of an earlier turn out of the context, and no call since has it.",
    "request_lost": "Later calls of the turn no longer have the first words of what the user asked for.",
    "tail_lost": "Messages that a compaction kept were not sent afterwards.",
    "loop": "Compactions at three or more calls in a row.",
    "sliding_window": "Messages are dropped or shortened every few calls by design, without a summary.",
    "thrash": "Three or more compactions within a few calls of one another.",
    "summary_not_kept": "After the compaction the history came back.",
    "grown": "The request after the compaction is larger than the one before it.",
    "still_over": "The request after the compaction is still over the threshold.",
    "setting_never_acts": "A typed setting contradicts what the recording shows about the threshold.",
    "own_early": "A compaction below the threshold of the agent's own rule.",
    "own_missed": "Checks reached the threshold of the agent's own rule, and it did not compact.",
    "other_threshold": "All checks fit one threshold, and it is not that of the agent's rule.",
    "needless": "Without the automatic compactions every request would have stayed below 90 % of the window, with room "
    "for an answer.",
    "never_paid": "Compactions that cost more than they saved up to the next one, at list prices.",
    "needed": "Without the automatic compactions requests would have come near the window, or over it, or would have "
    "left an answer no room.",
    "avoided_overflows": "The replay has fewer overflows than the same session without compaction.",
    "timing_gap": "The last count was still below the threshold; only the estimate of the next request was not.",
    "correction_limited": "The correction factor reached its upper or lower limit.",
    "inline_data": "Pictures or files in the messages are counted by their bytes.",
    "stacked_continuations": "Several continuation messages follow one another.",
    "empty_summary": "The summary has no text.",
    "fallback_summary": "The summary was put together mechanically, without a model.",
    "sealed_summary": "The summary is encrypted, or not in the file.",
    "silent_truncation": "The prompt fell while the log grew, and no compaction is recorded.",
    "results_cleared": "Later requests have older tool results shorter or empty, by edits instead of a compaction.",
    "left_branches": "Branches that a rewind or an edit abandoned hold compactions, refused requests or "
    "larger prompts.",
    "usage_in_characters": "The recorded counts grow by one for each byte: they seem to count characters, not tokens.",
    "usage_repeated": "Counts that repeat those of the call before.",
    "cached_above": "More cached tokens than prompt tokens are recorded.",
    "no_usage": "Calls without a count from the provider.",
    "repeated_call": "The same call, or the same few in turn, five times or more with the same results.",
    "asked_again": "After a compaction the agent made the same calls again and got results that the context "
    "no longer had.",
}
CHIPS = (
    GlossaryTerm(
        "errors", "Sessions whose verdict is an error: an overflow, a loop, a lost request, a contradicted window."
    ),
    GlossaryTerm("warnings", "Sessions whose verdict is a warning."),
    GlossaryTerm("fine", "Sessions of which nothing worse than a note is said."),
)
OF_FINDINGS = tuple(
    GlossaryTerm(KINDS[kind], meaning) for kind, meaning in FINDINGS.items() if kind not in ("overflow", "near_miss")
)
# Heading, id and terms of each part of the glossary.
PARTS = (
    ("Glossary", "glossary", GLOSSARY),
    ("Findings", "glossary-findings", OF_FINDINGS),
    ("Filters of the list", "glossary-filters", CHIPS),
    ("Where a figure comes from", "glossary-sources", SOURCES),
    ("Beside a rule or a request", "glossary-verdicts", VERDICTS),
)
BY_LABEL = {label: term for *_, terms in reversed(PARTS) for term in terms for label in (term.name, *term.labels)}
