"""What traces and scripted runs share: a replay's passes and views in the columns of the vectors."""

from __future__ import annotations

from guard_core.conformance.vectors import VectorError
from guard_core.trace import CompactionRecord, Pass, Trace
from guard_core.views import Span, Synthetic, View

_ATTEMPT = {
    "in_contents": "contents_in",
    "in_tokens": "tokens_in",
    "summ_contents": "summariser_contents",
    "summ_tokens": "summariser_tokens",
    "summary_bytes": "summary_bytes",
    "new_contents": "contents_after",
    "new_tokens": "tokens_after",
}


def attempts(record: CompactionRecord | None, names: list[str]) -> list[list[int]]:
    """One row per pass."""
    return [attempt(item, names) for item in record.passes] if record is not None else []


def attempt(item: Pass, names: list[str]) -> list[int]:
    """One pass as a row."""
    unknown = [name for name in names if name not in _ATTEMPT]
    if unknown:
        raise VectorError(f"the column {unknown[0][:40]!r} of an attempt is not known here")
    return [getattr(item, _ATTEMPT[name]) for name in names]


def contents(view: View) -> list[int | str]:
    """The messages sent: event indexes, "summary" and "continuation"."""
    indices: list[int | str] = []
    for segment in view:
        if isinstance(segment, Span):
            indices += range(segment.start, segment.stop)
        elif isinstance(segment, Synthetic):
            indices.append(segment.kind)
    return indices


def real_after(trace: Trace) -> list[int]:
    """The stored provider count after every step."""
    loaded: list[int] = trace.columns["real_loaded"].tolist()
    return [*loaded[1:], trace.state.real_tokens] if loaded else []
