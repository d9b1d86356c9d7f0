"""What it costs to store 20 more events of a long session, in bytes that are written; milliseconds are printed only.

`-s` prints both, beside storing the session for the first time. They are appended, or the session that a longer file
holds is compared with the stored one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import msgspec
import pytest
from django.db import connection

from guard_core.estimation.attribution import Attribution, attribute
from guard_core.events import Event, Role, TextPart, ToolCallPart, ToolResultPart
from guard_core.ledger import Ledger
from guard_core.sessions import ModelCall, Provenance, Session, Sourced
from inspector.models import Recording, default_project
from inspector.storage import loading, storing
from inspector.storage.appending import append
from inspector.storage.texts import store_texts

pytestmark = pytest.mark.once

STEPS, MORE = 8_000, 20  # calls of the session, events that come later
WINDOW = Sourced(200_000, Provenance.ASSUMED, "for a measurement")
KINDS = 200  # different results, so that texts are not what is measured


def session_of(steps: int) -> Session:
    """A session of one call and one result a step, a user's message every eight, all prompts counted."""
    events: list[Event] = []
    calls: list[ModelCall] = []
    tokens = 3_000
    for step in range(steps):
        if step % 8 == 0:
            events.append(Event(Role.USER, (TextPart("please " * 20),)))
            tokens += 40
        calls.append(ModelCall(len(events), len(events), tokens, output_tokens=30))
        call = ToolCallPart("run", {"number": step % KINDS}, f"call{step % KINDS}")
        size = 100 + 37 * (step % KINDS)
        events += [Event(Role.MODEL, (call,)), Event(Role.USER, (ToolResultPart("run", "x" * size, call.id),))]
        tokens += 40 + size // 4
    return Session(events=tuple(events), calls=tuple(calls), format="claude-code", source_id="growing")


class Written:
    """Counts the bytes that statements carry to the database, and how long all of it takes."""

    def __enter__(self) -> Written:
        self.bytes, self.statements = 0, 0
        self._watch = connection.execute_wrapper(self._count)
        self._watch.__enter__()
        self._start = time.perf_counter()
        return self

    def __exit__(self, *error: Any) -> None:
        self.milliseconds = 1_000 * (time.perf_counter() - self._start)
        self._watch.__exit__(*error)

    def _count(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.lstrip().upper().startswith(("INSERT", "UPDATE")):
            rows: Iterable[Any] = params if many else [params]
            self.bytes += sum(
                len(value) for row in rows for value in row or () if isinstance(value, bytes | memoryview)
            )
        self.statements += 1
        return execute(sql, params, many, context)


def computed(session: Session) -> tuple[Session, Ledger, Attribution]:
    """A session as an import has it before it is put on the list: texts stored, columns made."""
    ledger = Ledger.of(session)
    return msgspec.structs.replace(session, events=store_texts(session.events)), ledger, attribute(ledger)


def counts_of(ledger: Ledger) -> dict[str, int]:
    return {"events": ledger.event_count, "calls": ledger.step_count}


@pytest.mark.django_db
def test_storing_a_session_that_has_grown_writes_a_small_part_of_it():
    whole = session_of(STEPS)
    short = len(whole.events) - MORE
    calls = tuple(call for call in whole.calls if call.at < short)
    recording = Recording.objects.of(default_project()).create(
        sha256="0" * 64, name="growing", size=1, format="claude-code"
    )
    value, ledger, attribution = computed(msgspec.structs.replace(whole, events=whole.events[:short], calls=calls))
    with Written() as first:
        row = storing.store_session(recording, 0, value, ledger, attribution, window=WINDOW, counts=counts_of(ledger))
    value, ledger, attribution = computed(whole)
    with Written() as more:
        row = storing.extend_session(
            row, recording, 0, value, ledger, attribution, window=WINDOW, counts=counts_of(ledger), same=short
        )
    assert loading.load_ledger(row).to_bytes() == ledger.to_bytes()
    print(f"\n{STEPS:,} calls stored: {first.milliseconds:,.0f} ms, {first.bytes:,} bytes written")
    print(f"{MORE} events more: {more.milliseconds:,.1f} ms, {more.bytes:,} bytes written")
    assert more.bytes < first.bytes / 10


@pytest.mark.django_db
def test_appending_to_a_session_does_not_cost_more_where_it_is_long():
    whole = session_of(STEPS)
    short = len(whole.events) - 4 * MORE
    calls = tuple(call for call in whole.calls if call.at < short)
    recording = Recording.objects.of(default_project()).create(
        sha256="1" * 64, name="appended", size=1, format="claude-code"
    )
    value, ledger, attribution = computed(msgspec.structs.replace(whole, events=whole.events[:short], calls=calls))
    row = storing.store_session(recording, 0, value, ledger, attribution, window=WINDOW, counts=counts_of(ledger))
    milliseconds = []
    for start in range(short, len(whole.events), MORE):
        stop = start + MORE
        later = [call for call in whole.calls if start <= call.at < stop]
        with Written() as more:
            append(row, whole.events[start:stop], later)
        milliseconds.append(more.milliseconds)
        assert more.bytes < 50_000
    print(f"\n{MORE} events appended: {min(milliseconds):,.1f} ms at best of four times, {more.bytes:,} bytes written")
    row.refresh_from_db()
    assert loading.load_ledger(row).to_bytes() == Ledger.of(whole).to_bytes()
