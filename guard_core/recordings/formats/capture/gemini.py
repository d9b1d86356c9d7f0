"""Requests of the Gemini API (generateContent, streamGenerateContent): `contents`, `systemInstruction`, `tools`.

A streamed answer is a list, or an event stream, of responses whose texts follow each other; the last one has the
counts. `promptTokenCount` includes cached tokens; thoughts are counted beside the candidates.
Source: https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from typing import Any

from guard_core.events import Event, Part
from guard_core.recordings.formats.adk.parts import content_parts, pick_object, pick_text
from guard_core.recordings.formats.openai.completions import ChatReader
from guard_core.recordings.reading import chat, fields, streams
from guard_core.recordings.reading.fields import JSON

MODELS = "/models/"  # in a path, before the model's name


class GeminiReader(ChatReader):
    """Request logs in the Gemini API's spelling."""

    name = "gemini-api"

    def make_event(self, message: JSON, line: int | None) -> Event | None:
        role = chat.ROLES.get(fields.text(message, "role").lower() or "user")
        return None if role is None else Event(role, content_parts(message), line=line)

    def usage(self, usage: JSON) -> JSON:
        prompt = fields.first_tokens(usage, "promptTokenCount", "prompt_token_count")
        if prompt is None:
            return {}
        answered = fields.first_tokens(usage, "candidatesTokenCount", "candidates_token_count")
        thoughts = fields.first_tokens(usage, "thoughtsTokenCount", "thoughts_token_count")
        return {
            "prompt_tokens": prompt,
            "cached_tokens": fields.first_tokens(usage, "cachedContentTokenCount", "cached_content_token_count"),
            "output_tokens": None if answered is None and thoughts is None else (answered or 0) + (thoughts or 0),
        }

    def answer(self, response: JSON) -> JSON | None:
        content = response.get("content")
        return content if isinstance(content, dict) else None

    def system_of(self, body: JSON) -> tuple[Part, ...] | None:
        return content_parts(pick_object(body, "systemInstruction")) or None


def as_log(path: str, request: JSON, response: Any) -> tuple[JSON, JSON]:
    """A request and its answer under the names that every reader of logs knows."""
    inner = fields.mapping(request, "request") or request  # Code Assist wraps the request of the API
    name = path.partition(MODELS)[2].partition(":")[0] or fields.text(request, "model")
    body = {**inner, "messages": inner.get("contents"), "model": name}
    if isinstance(response, str):
        streamed = streams.pieces_of(response)
    else:
        streamed = list(fields.objects(response if isinstance(response, list) else [response]))
    pieces = [fields.mapping(piece, "response") or piece for piece in streamed]
    return body, _joined(pieces, name) if pieces else {}


def _joined(pieces: list[JSON], model: str) -> JSON:
    """One response of the pieces of a stream: texts of one kind that follow each other are one part."""
    parts: list[JSON] = []
    answer: JSON = {"model": model}
    for piece in pieces:
        candidates = list(fields.objects(piece.get("candidates")))
        for part in fields.objects(pick_object(candidates[0], "content").get("parts")) if candidates else ():
            last = parts[-1] if parts else {}
            are_texts = all(
                set(each) <= {"text", "thought"} and isinstance(each.get("text"), str) for each in (last, part)
            )
            if are_texts and (last.get("thought") is True) == (part.get("thought") is True):
                parts[-1] = {**last, "text": f"{last['text']}{part['text']}"}
            else:
                parts.append(part)
        if usage := pick_object(piece, "usageMetadata"):
            answer["usage"] = usage
        answer["id"] = pick_text(piece, "responseId") or answer.get("id", "")
        answer["model"] = answer["model"] or pick_text(piece, "modelVersion")
    if parts:
        answer["content"] = {"role": "model", "parts": parts}
    return answer
