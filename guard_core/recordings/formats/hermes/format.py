"""Hermes Agent: `state.db`, the lines of `hermes sessions export`, session files, and ShareGPT trajectories.

Definition: `hermes_state.py` and `trajectory.py` of https://github.com/NousResearch/hermes-agent.
Tokens are recorded per session only (input, cache read and cache write apart; their sum over `api_call_count` calls is
the session's total), so calls carry none, but where the session made one. A compaction marks rows `compacted` and
writes the kept ones again behind them, round a summary "[CONTEXT COMPACTION …": the copies are spans of the log
(rewritten where their content was shortened), the summary as inserted: declared. Before 0.19, or by its settings, a
session ended with reason "compression" and a child session continued it: both are read as one; sub-agents and branches,
children too, are sessions of their own. Versions to 0.16 write no row before such an end (`unwritten.py`). Rows that
were taken back are left out. An export holds active rows only, so that there the summary's wording is all that shows a
compaction: matched, and the history before it is lost. Facts count rows as messages, ids of calls and results once, and
declared compactions only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from guard_core.errors import DamagedRecording
from guard_core.recordings.base import Recording
from guard_core.recordings.formats.hermes.contexts import HermesReader
from guard_core.recordings.formats.hermes.known_names import NAMES
from guard_core.recordings.formats.hermes.rows import task_notes
from guard_core.recordings.formats.hermes.trajectories import read_trajectory
from guard_core.recordings.reading import fields, wrong_kinds
from guard_core.recordings.reading.build import FactCounter
from guard_core.recordings.reading.fields import JSON
from guard_core.recordings.reading.source import ByteSource, SourceShape
from guard_core.recordings.reading.sqlite_source import Database, tables
from guard_core.recordings.reading.states import SessionState, content_key, superseded
from guard_core.sessions import Session

USAGES = "session_model_usage"  # calls and tokens of each task of a session, in newer versions
# 11 in 0.13.0 and 0.14.0, 14 in 0.16.0, 16 in 0.17.0, 17 in 0.18.0, 19 in 0.18.1 and 0.18.2, 22 in 0.19.0.
SCHEMAS = "schema_version"  # hermes_state.py
WRITTEN_FIRST = 16  # from this schema on messages are written before a compaction ends their session
BEFORE_018, VERSIONS = "before 0.18", {17: "0.18", 19: "0.18"}  # of the agent; others may have been upgraded to
OWN_COLUMNS = frozenset({"tool_calls", "tool_call_id", "session_id", "role", "content"})
OWN_KEYS = ("api_call_count", "end_reason", "cache_read_tokens", "session_start", "platform")


class HermesFormat:
    name = "hermes"
    label = "Hermes"
    place = "~/.hermes/state.db"
    known_names = NAMES

    def matches(self, source: ByteSource) -> bool:
        if source.shape is SourceShape.SQLITE:
            columns = tables(source)
            messages = set(columns.get("messages", ()))
            return messages >= OWN_COLUMNS and "sessions" in columns and "parts" not in messages
        if source.shape is SourceShape.JSON:
            value = source.json_head(allow_nan=True)
            if isinstance(value, list):
                return _is_turns(value) or any(_is_trajectory(item) or _is_export(item) for item in value[:10])
            return _is_trajectory(value) or _is_export(value)
        heads = [line.obj for line in source.head_lines()]
        return any(_is_export(item) or _is_trajectory(item) or _is_session_meta(item) for item in heads)

    def read(self, source: ByteSource) -> Recording:
        facts = FactCounter(self.name)
        if source.shape is SourceShape.SQLITE:
            sessions = _read_database(source, facts)
        else:
            sessions = list(_read_objects(source, facts))
        if not sessions:
            raise DamagedRecording("this Hermes file holds no session with messages")
        return Recording(self.name, tuple(sessions), facts.facts(), source.notes)


FORMAT = HermesFormat()


def _is_export(value: Any) -> bool:
    if not isinstance(value, dict) or not isinstance(value.get("messages"), list):
        return False
    return "system_prompt" in value and any(key in value for key in OWN_KEYS)


def _is_session_meta(value: JSON) -> bool:
    return value.get("role") == "session_meta" and ("tools" in value or "model" in value)


def _is_trajectory(value: Any) -> bool:
    return isinstance(value, dict) and _is_turns(value.get("conversations"))


def _is_turns(value: Any) -> bool:
    first = next(fields.objects(value), None) if isinstance(value, list) else None
    return first is not None and isinstance(first.get("from"), str) and "value" in first


# -- the database


def _read_database(source: ByteSource, facts: FactCounter) -> list[Session]:
    messages: dict[str, list[JSON]] = {}
    with Database(source) as database:
        headers = {str(row["id"]): row for row in database.rows("sessions", order=("started_at", "rowid"))}
        for row in database.rows("messages", order=("id", "rowid")):
            messages.setdefault(str(row.get("session_id")), []).append(row)
        usages: dict[str, list[JSON]] = {}  # of models and tasks, by session
        for row in database.rows(USAGES) if USAGES in tables(source) else ():
            usages.setdefault(str(row.get("session_id")), []).append(row)
        schemas = [fields.tokens(row, "version") for row in database.rows(SCHEMAS)] if SCHEMAS in tables(source) else []
        missing = database.wal_sentence() if not messages else ""
    if missing:
        raise DamagedRecording(missing)
    for name in messages:
        headers.setdefault(name, {"id": name})
    sessions: list[Session] = []
    for chain in _chains(headers):
        if any(messages.get(name) for name in chain):
            rows = [headers[name] for name in chain]
            with source.apart(sessions):
                sessions.append(_read_chain(source, rows, messages, usages, facts, next(iter(schemas), None) or 0))
        else:
            source.notes.skip("session without messages")
    return sessions


def _chains(headers: dict[str, JSON]) -> list[list[str]]:
    """Sessions that continue one another after a compression, as one chain each."""
    children: dict[str, list[JSON]] = {}
    for name, row in headers.items():
        parent = str(row.get("parent_session_id") or "")
        config = fields.decoded(row.get("model_config"))
        is_marked = isinstance(config, dict) and any(config.get(key) for key in ("_delegate_from", "_branched_from"))
        if parent != name and not is_marked:
            children.setdefault(parent, []).append(row)
    following = {
        name: str(_continuation(row, children[name])["id"])
        for name, row in headers.items()
        if row.get("end_reason") == "compression" and name in children
    }
    continued = set(following.values())
    chains: list[list[str]] = []
    for name in headers:
        if name in continued:
            continue
        chain, seen = [name], {name}
        while (after := following.get(chain[-1])) is not None and after not in seen:
            chain.append(after)
            seen.add(after)
        chains.append(chain)
    covered = {name for chain in chains for name in chain}
    return chains + [[name] for name in headers if name not in covered]  # sessions that are their own ancestors


def _continuation(parent: JSON, children: list[JSON]) -> JSON:
    """The child that continues a session which a compression ended: the one that began nearest to its end.

    Sub-agents and branches are children, too; they are marked in newer versions only.
    """
    ended = fields.timestamp(parent, "ended_at")
    return min(children, key=lambda child: _distance(child, ended))


def _distance(row: JSON, ended: float | None) -> float:
    """Seconds between the end of a session and the beginning of a child; 0 where the file does not have both."""
    started = fields.timestamp(row, "started_at")
    return abs(started - ended) if started is not None and ended is not None else 0.0


def _read_chain(
    source: ByteSource,
    chain: list[JSON],
    messages: dict[str, list[JSON]],
    usages: dict[str, list[JSON]],
    facts: FactCounter,
    schema: int,
) -> Session:
    """One chain; `schema` is the version of the database's tables, 0: not known."""
    reader = HermesReader(source, facts)
    written = [number for number, row in enumerate(chain) if messages.get(str(row.get("id")))]
    by_turn = 0 < schema < WRITTEN_FIRST or len(written) <= written[-1]
    for number in written:
        rows = messages[str(chain[number].get("id"))]
        declared = number > 0 or any(item.get("compacted") for item in rows)
        reader.rows(rows, declared=declared, child=number > 0, by_turn=by_turn, number=number)
    reader.unwritten(chain, by_turn=by_turn)
    parent = chain[0].get("parent_session_id")
    notes = [f"A child session of {str(parent)[:80]}."] if parent else []
    rows = [row for item in chain for row in usages.get(str(item.get("id")), ())]
    notes += task_notes(row for row in rows if fields.text(row, "task"))
    version = BEFORE_018 if by_turn else VERSIONS.get(schema, BEFORE_018 if 0 < schema < min(VERSIONS) else "")
    keys = ("input_tokens", "cache_read_tokens", "cache_write_tokens", "output_tokens", "api_call_count")
    for row in chain:
        wrong_kinds.check_counts(source, row, keys, "a session's row")
    known = {key: [count for row in chain if (count := fields.tokens(row, key)) is not None] for key in keys}
    totals = {key: sum(counts) for key, counts in known.items() if counts}
    return reader.session({**chain[0], **totals}, notes, version)


# -- JSON


def _read_objects(source: ByteSource, facts: FactCounter) -> Iterator[Session]:
    if source.shape is SourceShape.JSON:
        if _is_turns(source.json_head(allow_nan=True)):
            yield from _read_object(source, {"conversations": source.json(allow_nan=True)}, facts)
            return
        earlier = superseded(_states(_items(source)))
        yield from _read_latest(source, _items(source), earlier, facts)
        return
    if any(_is_session_meta(line.obj) for line in source.head_lines()):
        yield from _read_session_lines(source, facts)
        return
    earlier = superseded(_states((line.number, line.obj) for line in source.lines()))
    yield from _read_latest(source, ((line.number, line.obj) for line in source.lines()), earlier, facts)


def _items(source: ByteSource) -> Iterator[tuple[int, JSON]]:
    """The objects of a JSON value, each with its number among them."""
    return enumerate(fields.objects(source.elements(allow_nan=True)))


def _read_latest(
    source: ByteSource, items: Iterable[tuple[int, JSON]], earlier: set[int], facts: FactCounter
) -> Iterator[Session]:
    """Each session in its fullest state."""
    for place, item in items:
        if place in earlier:
            source.notes.folded += 1
        else:
            yield from _read_object(source, item, facts)


def _states(items: Iterable[tuple[int, JSON]]) -> Iterator[SessionState]:
    for place, item in items:
        if _is_export(item):
            yield SessionState(
                place, fields.text(item, "id"), tuple(map(content_key, fields.objects(item["messages"])))
            )


def _read_object(source: ByteSource, value: JSON, facts: FactCounter) -> Iterator[Session]:
    if _is_trajectory(value):
        yield read_trajectory(source, value, facts)
    elif isinstance(value.get("messages"), list):
        rows = list(fields.objects(value["messages"]))
        yield _read_export(source, value, rows, facts)
    else:
        source.notes.skip("object that is not a session")


def _read_export(source: ByteSource, header: JSON, rows: Iterable[JSON], facts: FactCounter) -> Session:
    reader = HermesReader(source, facts)
    rows = list(rows)
    reader.rows(rows, declared=any(row.get("compacted") for row in rows))
    return reader.session(header)


def _read_session_lines(source: ByteSource, facts: FactCounter) -> Iterator[Session]:
    """The older session files: a line about the session, then a line per message."""
    header: JSON = {}
    rows: list[JSON] = []
    for line in source.lines():
        if _is_session_meta(line.obj):
            header = line.obj
        else:
            rows.append(line.obj)
    yield _read_export(source, header, rows, facts)
