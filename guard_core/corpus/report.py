"""Rows, compactions and change points as plain values for JSON and tables. Steps count from 0, figures are tokens."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from guard_core.corpus.bounds import CheckPlace, RowKey, SessionStretch
from guard_core.corpus.changes import ThresholdChanges
from guard_core.corpus.rows import TriggerRow
from guard_core.rules.evidence import Cause

COMPACTION_COLUMNS = ("session", "title", "agent", "version", "model", "window", "step", "tokens", "cause", "time")


def report(rows: Sequence[TriggerRow], changes: ThresholdChanges, items: Iterable[SessionStretch]) -> dict[str, Any]:
    """All of it, with every compaction."""
    return {
        "rows": [_row(row) for row in rows],
        "changes": [_change(change) for change in msgspec.to_builtins(changes.changes)],
        "contradict_themselves": changes.inconsistent,
        "without_a_time": changes.undated,
        "compactions": [dict(zip(COMPACTION_COLUMNS, values, strict=True)) for values in compactions_of(items)],
    }


def compactions_of(items: Iterable[SessionStretch]) -> Iterator[tuple[Any, ...]]:
    """Each compaction of the sessions, as values of COMPACTION_COLUMNS."""
    for item in items:
        key = item.key
        for check in item.evidence.compactions:
            place = (key.agent, key.version, key.model, key.window)
            yield item.session, item.title, *place, check.step, check.tokens, str(check.cause), check.time


def _row(row: TriggerRow) -> dict[str, Any]:
    values = msgspec.to_builtins(row)
    key = RowKey(*values.pop("key"))
    return {
        **key._asdict(),
        **values,
        "sessions": list(row.sessions),
        "compactions": {str(cause): row.compactions.get(cause, 0) for cause in Cause},
        "above": _place(row.above),
        "at_most": _place(row.at_most),
        "rules": [
            {
                **rule,
                "contradicts": [
                    {**_place(CheckPlace(*item["place"])), "fired": item["fired"]} for item in rule["contradicts"]
                ],
            }
            for rule in values["rules"]
        ],
        "clusters": [
            {**item, "above": _place_or_none(item["above"]), "at_most": _place_or_none(item["at_most"])}
            for item in values["clusters"]
        ],
        "forced": [{**_place(CheckPlace(*item["place"])), "refused": item["refused"]} for item in values["forced"]],
    }


def _change(values: dict[str, Any]) -> dict[str, Any]:
    """A change point with the columns of its key beside its own."""
    key = RowKey(*values.pop("key"))
    before, after = _place(CheckPlace(*values["before"])), _place(CheckPlace(*values["after"]))
    return {**key._asdict(), "version_before": values.pop("version"), **values, "before": before, "after": after}


def _place_or_none(values: list[Any] | None) -> Any:
    return None if values is None else _place(CheckPlace(*values))


def _place(place: CheckPlace | None) -> Any:
    return None if place is None else {"tokens": place.tokens, "session": place.session, "step": place.step}
