"""What Mistral Vibe's harness estimates of requests: a quarter of the bytes of their JSON, by the columns of parts."""

from __future__ import annotations

from functools import partial
from typing import TypeVar

import numpy as np

from guard_core.costs import CALL, MEDIA, MODEL, REASONING, RESULT, TEXT
from guard_core.ledger import Ints, Ledger
from guard_core.policies.pieces.estimates import TokenEstimate
from guard_core.trace import Head
from guard_core.view_sums import sums_of
from guard_core.views import Segment, Span, Synthetic, View

Size = TypeVar("Size", int, Ints)  # bytes of one request, or of several

BYTES_PER_TOKEN, BASE = 4, 1  # of the estimate; the latter in tokens (recordings.formats.vibe.estimate)
PICTURE = 8_192  # tokens; DEFAULT_IMAGE_TOKENS of completion_profile/types.py
# Bytes of JSON around what a message says, with the comma behind it; texts are counted with their quotation marks.
USER_FRAME = len('{"role":"user","content":[]},')
MODEL_FRAME = len('{"role":"assistant","content":[]},')
SYSTEM_FRAME = len('{"role":"system","content":[]},')
RESULT_FRAME = len('{"role":"tool","tool_call_id":"","name":"","outcome":"success","content":[]},')
TEXT_FRAME, QUOTES, COMMA, BRACKETS = len('{"type":"text","text":}'), len('""'), len(","), len("[]")
CALL_FRAME = len('{"type":"tool_call","id":"","name":"","arguments":{"type":"json","raw":,"value":}},')
REASONING_FRAME = len('{"type":"reasoning","content":[]},') + TEXT_FRAME
LINE_BREAK = len("\\n") - len("\n")  # what a line break takes more in JSON
BREAKS = {"note": 4, "summary": 6}  # line breaks in messages that no event holds, by their kind (3.0.3)


def request_tokens(size: Size) -> Size:
    """The estimate of a request whose messages and tools have so many bytes."""
    return -(-(size + BRACKETS) // BYTES_PER_TOKEN) + BASE


def fixed_bytes(ledger: Ledger) -> int:
    """Bytes of system prompt and tools. Where the recording lacks one of the two, they are taken to be as large as
    makes the estimate of the first counted request equal to that count."""
    system = max(ledger.system_chars, ledger.system_tokens * BYTES_PER_TOKEN)
    known = SYSTEM_FRAME + TEXT_FRAME + QUOTES + system + ledger.tools_tokens * BYTES_PER_TOKEN
    counted = np.flatnonzero(ledger.steps["prompt_tokens"] > 0)
    if (ledger.system_recorded and ledger.tools_recorded) or not len(counted):
        return known
    first = counted[0]
    prompt, at = (ledger.steps[name].item(first) for name in ("prompt_tokens", "at"))
    return max(known, prompt * BYTES_PER_TOKEN - log_bytes(ledger).item(at))


def message_bytes(ledger: Ledger, form: str = "") -> Ints:
    """Bytes of the messages of each event; a picture counts as many as its tokens are worth."""
    parts = ledger.parts_in(form)
    kind, named = parts["kind"], parts["name_chars"] + parts["id_chars"]
    text = parts["json_chars"] + parts["bytes"] - parts["chars"]  # as a JSON string in UTF-8
    # Arguments are written twice: as the model wrote them, mostly with a space behind commas and colons, and compact.
    arguments = text + parts["separators"] + parts["bytes"]
    sizes = np.select(
        [kind == TEXT, kind == RESULT, kind == CALL, kind == REASONING, kind == MEDIA],
        [
            TEXT_FRAME + text + COMMA,
            RESULT_FRAME + named + TEXT_FRAME + text,
            CALL_FRAME + named + arguments,
            REASONING_FRAME + text,
            np.full(len(kind), PICTURE * BYTES_PER_TOKEN),
        ],
        0,
    )
    says = np.isin(kind, (TEXT, CALL, REASONING, MEDIA)).astype(np.int64)
    frames = np.where(ledger.events["flags"] & MODEL, MODEL_FRAME, USER_FRAME) - COMMA
    return np.asarray(ledger.by_event(sizes) + np.where(ledger.by_event(says) > 0, frames, 0))


def log_bytes(ledger: Ledger, form: str = "") -> Ints:
    """Prefix sums of the same over the log."""
    return ledger.prefix_by(f"mistral-vibe bytes/{form}", lambda ledger: message_bytes(ledger, form))


def text_message_bytes(size: int, breaks: int = 0) -> int:
    """Bytes of a user's message of so many bytes of text with so many line breaks."""
    return USER_FRAME + TEXT_FRAME + QUOTES + size + breaks * LINE_BREAK


def view_bytes(ledger: Ledger, view: View) -> int:
    """Bytes of the messages of a view; of a long one that begins as the last one did only what differs is added up."""
    return sums_of(ledger, "mistral-vibe bytes", partial(segment_bytes, ledger)).total(view)


def head_tokens(ledger: Ledger, head: Head, at: Ints) -> Ints:
    """The estimate of requests over `at` events that begin with a head."""
    prefix, first = log_bytes(ledger), head.kept_from
    begins = fixed_bytes(ledger) + view_bytes(ledger, head.view)
    return request_tokens(begins + np.maximum(prefix[at] - prefix[first], 0))


def segment_bytes(ledger: Ledger, segment: Segment) -> int:
    """Bytes of the messages of one segment of a view."""
    if isinstance(segment, Span):
        prefix = log_bytes(ledger, segment.form)
        return prefix.item(segment.stop) - prefix.item(segment.start)
    assert isinstance(segment, Synthetic)
    return text_message_bytes(segment.bytes, BREAKS.get(segment.kind, 0))


ESTIMATE = TokenEstimate(
    "mistral-vibe bytes of JSON",
    "Vibe's estimate, a quarter of the bytes of JSON,",
    lambda ledger, form: message_bytes(ledger, form) // BYTES_PER_TOKEN,
    lambda size: text_message_bytes(size) // BYTES_PER_TOKEN,
)
