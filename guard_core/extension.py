"""Extending a replay: the trace of a session that has grown, from that of its beginning and its last state.

    digest = basis(ledger, policy, len(trace), window=window, usage=usage)     # kept beside the trace
    longer = extended(trace, digest, ledger_now, policy, window=window, usage=usage_now)

The steps of a trace are those of a longer session, too, where nothing that they were computed from has changed: the
log before them, the recorded compactions they were sent on, settings, and what the provider counts for requests over
that log. Growth may change the latter (a compaction that is recorded later, a tool's result that comes late, ratios
that are fitted anew), so a digest of all of it decides. Where it differs, the session is replayed from its beginning.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import numpy as np

from guard_core import __version__
from guard_core.estimation.usage import AttributedUsage, RatioUsage, Usage
from guard_core.ledger import Ints, Ledger
from guard_core.packing import encode
from guard_core.policies.base import Policy
from guard_core.replay import AssumedUsage, assumed_usage, replay, request_bytes, settings_of
from guard_core.step_columns import CALL_COLUMNS
from guard_core.summaries.base import Summarizer
from guard_core.summaries.sizes import RecordedSummaries, SizeModel
from guard_core.trace import Trace


def basis(
    ledger: Ledger,
    policy: Policy,
    steps: int,
    *,
    window: int,
    usage: Usage | None = None,
    summarizer: Summarizer | None = None,
    request: str | None = None,
) -> bytes | None:
    """SHA-256 over all that the first `steps` steps of a replay rest on; arguments as of `guard_core.replay.replay`.

    None where that cannot be said: of a provider or a summariser that is not this library's own arithmetic.
    """
    usage = assumed_usage(ledger, policy) if usage is None else usage
    summarizer = RecordedSummaries.of(ledger) if summarizer is None else summarizer
    at = int(ledger.steps["at"][:steps].max(initial=0))
    epochs = int(ledger.steps["epoch"][:steps].max(initial=-1)) + 1
    counts = _counts(usage, at, epochs, steps)
    if counts is None or not isinstance(summarizer, SizeModel):
        return None
    fixed, arrays = counts
    settings = settings_of(policy)
    about = (__version__, policy.name, settings, window, repr(summarizer), steps, ledger.bases[:epochs], fixed)
    digest = hashlib.sha256(encode(about))
    for array in [*_log(ledger, at, steps), request_bytes(ledger, request)[:steps], *arrays]:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array, dtype="<i8").tobytes())
    return digest.digest()


def extended(  # noqa: PLR0913 - the arguments of a replay, and what it extends
    trace: Trace,
    known: bytes | None,
    ledger: Ledger,
    policy: Policy,
    *,
    window: int,
    usage: Usage | None = None,
    summarizer: Summarizer | None = None,
    request: str | None = None,
    each: Callable[[int], object] = lambda done: None,
) -> Trace | None:
    """The trace of a session that has grown, as a replay from its beginning gives it; None where its first steps are
    not those of `trace` any more, or nothing is known of them. `known` is their basis, from when they were replayed.
    The other arguments are those of `guard_core.replay.replay`.
    """
    if known is None or trace.state is None or len(trace) > ledger.step_count:
        return None
    same = {"window": window, "usage": usage, "summarizer": summarizer, "request": request}
    if basis(ledger, policy, len(trace), **same) != known:  # type: ignore[arg-type]
        return None
    return replay(ledger, policy, **same, each=each, after=trace)  # type: ignore[arg-type]


def _log(ledger: Ledger, at: int, steps: int) -> list[Ints]:
    """The ledger before the last of some steps, and whether the log can be cut there."""
    events = [ledger.events[name][:at] for name in sorted(ledger.events)]
    rows = ledger.part_starts[at]
    parts = [ledger.parts[name][:rows] for name in sorted(ledger.parts)]
    calls = [ledger.steps[name][:steps] for name in (*CALL_COLUMNS, "epoch", "turn", "user_event")]
    fixed = [ledger.system_tokens, ledger.system_metadata_tokens, ledger.tools_tokens, ledger.cut(at)]
    return [*events, *parts, *calls, np.array(fixed, dtype=np.int64)]


def _counts(usage: Usage, at: int, epochs: int, steps: int) -> tuple[bytes, list[Ints]] | None:
    """All that a provider's counts of requests over the first `at` events, and what the agent compared before the first
    `steps`, rest on; None for one that is not known."""
    if type(usage) not in (RatioUsage, AssumedUsage, AttributedUsage):
        return None
    match usage:
        case RatioUsage():
            return encode(repr(usage)), []
        case AttributedUsage(attribution=attribution):
            anchors, inserted = usage.anchors, attribution.inserted[:epochs]
            ratios = (attribution.ratios, attribution.lexical_ratios, attribution.tools)
            scalars = (attribution.overhead, attribution.prologue, attribution.measured, anchors.unrecorded.tokens)
            arrays = [
                attribution.tokens[:at],
                anchors.whole[: at + 1],
                anchors.kept[: at + 1],
                anchors.begins[: epochs + 1],
            ]
            compared = usage.compared
            rule = None if compared is None else (*compared[:2], repr(compared.counter))
            arrays += [] if compared is None else [compared.tokens[:steps]]
            return encode((scalars, ratios, inserted, usage.exceeded, rule)), arrays
    return None
