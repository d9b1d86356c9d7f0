"""The offer to read a stored file again, where an earlier version read it and took over less than this one does."""

from __future__ import annotations

from django.urls import reverse

from inspector.ingest.submitting import report_of
from inspector.models import Import, Session

SUB_AGENTS = "links between this session and its sub-agents"
VERSION = "version of the agent, on which its own rule depends"
LEFT = "compactions on abandoned branches"
LOST = f"lines whose predecessor is not in the file, no {LEFT}"
CONTINUED = "conversation that continues from a summary of its own"
REQUESTS = ("anthropic-messages", "capture", "inspect", "langchain", "lhar", "openai-chat", "openai-responses", "otel")
GAINS: dict[int, dict[str, str]] = {  # reading: format: what it takes over that earlier ones did not
    1: {
        **dict.fromkeys(("claude-code", "copilot-cli", "crush", "opencode"), SUB_AGENTS),
        "hermes": "totals of prompt tokens for calls without a count of their own",
    },
    2: dict.fromkeys(("claude-code", "codex", "opencode"), VERSION),
    4: {"claude-code": "sizes of the files that were attached again after a compaction"},
    6: dict.fromkeys(("inspect", "otel"), "requests that the provider refused as too long"),
    7: {
        **dict.fromkeys(REQUESTS, CONTINUED),
        "codex": "model and window of single calls, sum of their tokens, or summary with nothing after its opening",
        "claude-code": f"{LOST}, and no empty summaries between Claude Code's own words",
        "atif": "steps that their numbers skip",
        "openhands": "model and window of single calls",
        "swe-agent": "observations that its configuration leaves out of requests",
        **dict.fromkeys(("pi", "qwen-code"), LOST),
        "gemini-cli": LEFT,
    },
    15: {
        "langchain": "texts and usage that its dumps escape",
        "atif": "tokens that were written to the cache",
        "otel": "requests in the words of the Responses API, of Google or of the AI SDK",
        "pi": "edits of its context",
    },
    20: {"pi": "names of agents that write pi's entries, such as Letta Code, OpenClaw and oh-my-pi"},
    21: {"gemini-cli": "tokens of thoughts among those of the answer", "gptme": "version, window and compactions"},
    22: {
        **dict.fromkeys(("anthropic-messages", "capture", "openai-chat"), "answers that a log keeps line by line"),
        "cline": "models of calls that only the screen's file names",
        "codex": "results as they were sent where they were cut",
        "gemini-cli": "tool calls of the answers that made them, in chats of the ACP mode",
        "kimi-code": "messages that its compactions joined",
        "opencode": "prompts among what its compactions kept",
    },
    23: {
        **dict.fromkeys(("pi", "crush"), "name of GitHub Copilot where it served a model"),
        "opencode": "name of GitHub Copilot where it served a model, and no compactions of the plugin DCP",
        "claude-code": "calls of sub-agents of its own behind the end of another session",
        "langchain": "answers and counts of requests that LangSmith's wrappers recorded",
        "trace-export": "texts, results and counts as several frameworks put them into spans",
        "otel": "messages that a span keeps in several events",
        "provider-log": "counts in the metadata of an answer",
        **dict.fromkeys(("openai-chat", "anthropic-messages"), "results and counts kept beside the messages"),
    },
    24: {
        "opencode": "what models thought, as part of their output, windows of a subscription to ChatGPT, or prompts "
        "before a summary that was broken off",
        "pi": "windows of a subscription to ChatGPT, or summaries of oh-my-pi as they were sent",
        "copilot-cli": "counts of a session whose totals are of its calls",
        "codex": "searches of the web with two ids",
    },
    25: {"codex": "rollbacks beyond a compaction, or note that the history begins in another file"},
}


def offer(row: Session, newest: Import | None) -> dict[str, str]:
    """What is missing and where to post; empty for a session that this version has read or would read alike."""
    if newest is None or not any(row.format in gains for gains in GAINS.values()):
        return {}
    if not newest.ended:
        return {"sentence": "The stored file is being read again.", "report": newest.get_absolute_url()}
    report = report_of(newest)
    if report is None:
        return {}
    # What readings after that one take over from the format.
    missing = [gains[row.format] for number, gains in GAINS.items() if number > report.reading and row.format in gains]
    if not missing:
        return {}
    return {
        "sentence": (
            "An earlier version of this program read the file of this session and took over no "
            f"{' and no '.join(missing)}. "
            "If the file holds any, they appear here once it is read again; title, tags and window stay."
        ),
        "url": reverse("import_again", args=[newest.pk]),
    }
