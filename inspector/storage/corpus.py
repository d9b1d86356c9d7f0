"""What the rules say of many stored sessions, in few numbers each: stored with their explanations, read at once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from django.db.models import QuerySet

from guard_core.corpus import SessionStretch
from guard_core.rules.evidence import StretchEvidence
from inspector.models import Session

_decoder = msgspec.msgpack.Decoder(tuple[StretchEvidence, ...])


class Corpus(NamedTuple):
    """The stretches of sessions, the number of model calls of each session by its key, and how many sessions have not
    been looked at yet."""

    stretches: list[SessionStretch]
    calls: dict[str, int]
    pending: int


def load(sessions: QuerySet[Session]) -> Corpus:
    """The evidence of these sessions. What an older version stored in another form counts as pending."""
    stretches: list[SessionStretch] = []
    calls: dict[str, int] = {}
    pending = 0
    columns = ("pk", "title", "started_at", "calls", "explanation__evidence")
    for pk, title, started, count, body in sessions.order_by().values_list(*columns).iterator(2_000):
        try:
            evidence = None if body is None else _decoder.decode(body)
        except msgspec.MsgspecError:
            evidence = None
        if evidence is None:
            pending += 1
            continue
        key = str(pk)
        calls[key] = count
        moment = None if started is None else started.timestamp()
        stretches += [SessionStretch(key, title, moment, item) for item in evidence]
    return Corpus(stretches, calls, pending)
