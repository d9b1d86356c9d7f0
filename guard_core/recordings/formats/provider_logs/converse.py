"""Requests of Amazon Bedrock's Converse API: `messages` of blocks, `system`, `toolConfig`, `inferenceConfig`.

`inputTokens` is without what the cache gave and took, which is counted beside it and in `totalTokens`. Strands Agents
writes counts of every provider in these words, into the `metadata` of an answer: where its total is the sum of input
and output alone, as of OpenAI's and Gemini's models, the cached tokens are within the input, unless they are more.
Source: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.
"""

from __future__ import annotations

from guard_core.events import Event, Part
from guard_core.recordings.formats.openai.completions import ChatReader
from guard_core.recordings.reading import bedrock, chat, fields
from guard_core.recordings.reading.fields import JSON


class ConverseReader(ChatReader):
    """Request logs in the Converse API's spelling."""

    name = "bedrock-converse"

    def make_event(self, message: JSON, line: int | None) -> Event | None:
        """The event of one message of blocks."""
        role = chat.ROLES.get(fields.text(message, "role").lower())
        if not isinstance(message.get("content"), list):
            self.source.notes.problem("a message without a list of blocks as its content", line)
        listed = list(fields.objects(message.get("content")))
        for block in listed:
            if not bedrock.is_known(block):
                self.source.notes.problem(f"a block of an unknown kind: {ascii(list(block))[:80]}", line)
        parts = tuple(part for block in listed for part in bedrock.parts(block))
        return None if role is None else Event(role, parts, line=line)

    def usage(self, usage: JSON) -> JSON:
        """Counts of a response, what was cached added to the prompt."""
        return usage_of(usage)

    def answer(self, response: JSON) -> JSON | None:
        """The message of a response."""
        return fields.mapping(fields.mapping(response, "output"), "message") or None

    def system_of(self, body: JSON) -> tuple[Part, ...] | None:
        """The system prompt, a list of blocks."""
        return tuple(part for block in fields.objects(body.get("system")) for part in bedrock.parts(block)) or None


def usage_of(usage: JSON) -> JSON:
    """The counts of `usage` as fields of ModelCall; empty where it says nothing."""
    fresh = fields.tokens(usage, "inputTokens")
    if fresh is None:
        return {}
    read = fields.first_tokens(usage, "cacheReadInputTokens", "cacheReadInputTokenCount")
    written = fields.first_tokens(usage, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    output = fields.tokens(usage, "outputTokens")
    cached = (read or 0) + (written or 0)
    is_whole = fields.tokens(usage, "totalTokens") == fresh + (output or 0) and cached <= fresh
    return {
        "prompt_tokens": fresh if is_whole else fresh + cached,
        "cached_tokens": read,
        "cache_write_tokens": written,
        "output_tokens": output,
    }


def as_log(request: JSON) -> JSON:
    """A request with its tools and the limit of its answer under the names that every reader of logs knows."""
    specs = (
        fields.mapping(item, "toolSpec") for item in fields.objects(fields.mapping(request, "toolConfig").get("tools"))
    )
    tools = [{**spec, "inputSchema": fields.mapping(spec, "inputSchema").get("json")} for spec in specs if spec]
    limit = fields.tokens(fields.mapping(request, "inferenceConfig"), "maxTokens")
    return {**request, **({"tools": tools} if tools else {}), **({"max_tokens": limit} if limit else {})}
