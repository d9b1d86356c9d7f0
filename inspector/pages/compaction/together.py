"""Two to four compactions beside one another: what each removed, kept and inserted, its price, and what instructions
became of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from guard_core.bridge import Bridge
from guard_core.outcomes.words import dollars
from inspector.pages.compaction import facts, presenter
from inspector.pages.compaction.bridge import NAMES
from inspector.pages.compaction.presenter import Compaction
from inspector.pages.compaction.views import bridge_of, count_of, item_of, no_such, texts_of
from inspector.pages.errors.views import plain
from inspector.pages.session.frame import SIDES, Frame, frame, frame_of
from inspector.pages.shared.numbers import DASH, compaction_index, compaction_number, percent, signed, step_number
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.requests import DROPPED, KEPT, REWRITTEN, SUMMARISED

MOST = 4
LONGEST = 600  # characters of one parameter that are read
MOST_SETTINGS = 40  # of one address that are read
OFFERED = 200  # compactions of the session in the form
# `recorded/2` and `replayed/2` are of this session under the settings of the page; an address, or `SESSION/2`, names
# one of any session, under its own settings where `side=replayed` says that it is of a replay.
_OWN = re.compile(r"(?P<side>recorded|replayed)/(?P<number>[0-9]{1,6})")
_ELSEWHERE = re.compile(r"(?:.*/s/)?(?P<session>[0-9a-fA-F-]{36})/(?:c/)?(?P<number>[0-9]{1,6})(?:/.*)?")


class Side(NamedTuple):
    """One compaction of the comparison, on the page of its session."""

    letter: str
    page: Frame
    item: Compaction

    @property
    def url(self) -> str:
        return self.page.compaction_url(self.item.index, self.item.side)


class Row(NamedTuple):
    """One figure of each compaction, None where it is not known; `is_money`: in the unit of `windows.prices`, else
    tokens or messages."""

    name: str
    values: list[int | None]
    is_money: bool = False


@require_GET
def compactions_together(request: HttpRequest, session_id: UUID, number: int) -> HttpResponse:
    """A compaction beside those that `?with=` names, up to three; without any, the form that picks them."""
    page = frame(request, session_id)
    side = request.GET.get("side", "")
    side = side if side in SIDES else page.side
    count = count_of(page, side)
    if not 1 <= number <= count:
        return plain(request, 404, "There is no such compaction", no_such(side, count), page.paths["overview"])
    first = Side("A", page, item_of(page, side, compaction_index(number)))
    sides, errors = _others(request, first)
    return render(request, "inspector/compaction/together.html", _context(first, sides, errors))


def _others(request: HttpRequest, first: Side) -> tuple[list[Side], list[str]]:
    """The first and those that the address names beside it, and what is wrong."""
    sides, errors = [first], []
    texts = [text for text in request.GET.getlist("with") if text.strip()]
    for text in texts[: MOST - 1]:
        try:
            side = _side(request, first.page, text.strip()[:LONGEST], "ABCD"[len(sides)])
        except ValueError as error:
            errors.append(str(error))
            continue
        if any(_key(side) == _key(known) for known in sides):
            errors.append(f"{_name(side)} is compared already.")
        else:
            sides.append(side)
    if len(texts) >= MOST:
        errors.append(f"At most {MOST} are compared; the others are left out.")
    return sides, errors


def _key(side: Side) -> tuple[UUID, str]:
    return side.page.row.pk, side.url


def _side(request: HttpRequest, page: Frame, text: str, letter: str) -> Side:
    """What one parameter names. Raises ValueError with a sentence where there is no such compaction."""
    side = "recorded"
    if own := _OWN.fullmatch(text):
        side, number = own["side"], int(own["number"])
    elif there := _ELSEWHERE.fullmatch(text.partition("?")[0]):
        number, settings = int(there["number"]), _settings(text)
        side = settings.get("side", side) if settings.get("side") in SIDES else side
        try:
            page = frame_of(request, UUID(there["session"]), settings if side == "replayed" else {}, side)
        except (ValueError, Http404):
            raise ValueError("There is no such session.") from None
        if page.errors:
            raise ValueError(next(iter(page.errors.values())))
    else:
        raise ValueError("A compaction is named by the address of its page, as in …/s/…/c/1/.")
    count = count_of(page, side)
    if not 1 <= number <= count:
        raise ValueError(no_such(side, count))
    return Side(letter, page, item_of(page, side, compaction_index(number)))


def _settings(address: str) -> dict[str, str]:
    """The settings of an address."""
    query = address.partition("?")[2]
    return dict(parse_qsl(query)) if query.count("&") < MOST_SETTINGS else {}


def _name(side: Side) -> str:
    kind = "Compaction" if side.item.recorded else "Replayed compaction"
    return f"{kind} {compaction_number(side.item.index):,}"


def _context(first: Side, sides: Sequence[Side], errors: list[str]) -> dict[str, Any]:
    page, item = first.page, first.item
    several = len({side.page.row.pk for side in sides}) > 1
    is_compared = len(sides) > 1
    return {
        **page.context(item.side, item.step),
        "errors": errors,
        "name": f"{_name(first)} of {count_of(page, item.side):,}",
        "back": first.url,
        "sides": [_about(side, several) for side in sides],
        "rows": _rows(sides) if is_compared else [],
        "open": _instructions(sides) if is_compared else [],
        "texts": [{"letter": side.letter, "texts": texts_of(side.page, side.item)} for side in sides if is_compared],
        "letters": [side.letter for side in sides],
        "is_compared": is_compared,
        "action": reverse("compactions_together", args=[page.row.pk, compaction_number(item.index)]),
        "hidden": [*page.choice.pairs().items(), *([("side", item.side)] if not item.recorded else [])],
        "choices": _choices(first, sides),
    }


def _choices(first: Side, sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The compactions of this session that may be picked, each field with the one that is shown there."""
    page = first.page
    options = [
        {"value": f"{side}/{compaction_number(index)}", "title": f"{title} {compaction_number(index):,}"}
        for side, title in (("recorded", "Compaction"), ("replayed", "Replayed compaction"))
        if side == "recorded" or page.analysis.diverges
        for index in range(min(OFFERED, count_of(page, side)))
        if (side, index) != (first.item.side, first.item.index)
    ]
    elsewhere = [
        {
            "value": _value(first, side),
            "title": f"{_name(side)} of {'another session' if _is_elsewhere(first, side) else 'other settings'}",
        }
        for side in sides
        if side.page is not first.page
    ]
    chosen = [_value(first, side) for side in sides[1:]]
    return [
        {"letter": letter, "options": [*options, *elsewhere], "chosen": chosen[place] if place < len(chosen) else ""}
        for place, letter in enumerate("BCD")
    ]


def _is_elsewhere(first: Side, side: Side) -> bool:
    return side.page.row.pk != first.page.row.pk


def _value(first: Side, side: Side) -> str:
    """How the form names a compaction."""
    number = compaction_number(side.item.index)
    if side.page is first.page:
        return f"{side.item.side}/{number}"
    replay = "" if side.item.recorded else side.page.choice.query(side="replayed")
    return f"{side.page.row.pk}/{number}{replay}"


def _about(side: Side, several: bool) -> dict[str, Any]:
    page, item = side.page, side.item
    settings = "" if item.recorded else page.choice.words()
    where = f"step {step_number(item.step):,}" if page.count else ""
    words = [where, settings, in_order(page.row.title) if several else ""]
    return {
        "letter": side.letter,
        "name": _name(side),
        "url": side.url,
        "about": ", ".join(filter(None, words)),
        "badges": presenter.badges(item),
    }


def _rows(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """The table: each figure with the difference of every later compaction to the first."""
    bridges = [bridge_of(side.page, side.item) for side in sides]
    table = [*_tokens(bridges), *_messages(sides), *_prices(sides)]
    rows = [_row(row) for row in table if any(row.values)]
    shares = [_share(bridge) for bridge in bridges]
    others = [{"value": share, "difference": ""} for share in shares[1:]]
    return [*rows, {"name": "remaining, of the request without it", "first": shares[0], "others": others}]


def _row(row: Row) -> dict[str, Any]:
    first, *others = row.values

    def words(value: int | None) -> str:
        if value is None:
            return DASH
        sign = "−" if value < 0 else ""
        return sign + (dollars(abs(value)) if row.is_money else f"{abs(value):,}")

    def difference(value: int | None) -> str:
        if value is None or first is None:
            return ""
        if row.is_money:
            return f"{'−' if value < first else '+'}{dollars(abs(value - first))}" if value != first else "±0"
        return signed(value - first)

    return {
        "name": row.name,
        "first": words(first),
        "others": [{"value": words(value), "difference": difference(value)} for value in others],
    }


def _tokens(bridges: Sequence[Bridge]) -> list[Row]:
    """Prompt tokens: the requests around each, and what it took from each part and put in."""
    whole = [None if bridge.is_blind else bridge for bridge in bridges]
    return [
        Row(
            "last request before, tokens", [one.total("before") if one and one.before_source else None for one in whole]
        ),
        Row("request without it, tokens", [None if one is None else one.uncompacted for one in whole]),
        *(
            Row(
                f"removed: {title[:1].lower()}{title[1:]}, tokens",
                [None if one is None else _removed(one, name) for one in whole],
            )
            for name, title in NAMES.items()
        ),
        Row("inserted, tokens", [None if one.is_sealed else one.total("inserted") for one in bridges]),
        Row("first request after, tokens", [one.total("after") for one in bridges]),
    ]


def _removed(bridge: Bridge, name: str) -> int:
    return next((part.removed for part in bridge.parts if part.name == name), 0)


def _share(bridge: Bridge) -> str:
    return DASH if bridge.is_blind else percent(bridge.total("after"), bridge.uncompacted, 1)


def _messages(sides: Sequence[Side]) -> list[Row]:
    """How many messages met each fate."""
    columns = []
    for side in sides:
        ledger, item = side.page.analysis.ledger, side.item
        states = presenter.states_of(item, presenter.columns_of(item), ledger)
        columns.append({name: int((states == name).sum()) for name in (KEPT, REWRITTEN, SUMMARISED, DROPPED)})
    return [Row(f"messages {name}", [column[name] for column in columns]) for name in columns[0]]


def _prices(sides: Sequence[Side]) -> list[Row]:
    """What each cost at once and saved up to the next compaction, where its price is known."""
    known = []
    for side in sides:
        analysis = side.page.analysis
        prices = analysis.recorded_payback if side.item.recorded else analysis.replayed_payback
        price = next((one for one in prices if one.index == side.item.index), None)
        known.append(price if analysis.prices.has_prices else None)
    return [
        Row("cost at once", [None if one is None else one.paid for one in known], is_money=True),
        Row("saved since", [None if one is None else one.saved for one in known], is_money=True),
    ]


def _instructions(sides: Sequence[Side]) -> list[dict[str, Any]]:
    """Instructions and open work that a compaction made worse, or that were open, and what each left of them."""
    columns = [{row["text"]: row for row in facts.facts_of(side.page, side.item)["rows"]} for side in sides]
    texts = dict.fromkeys(text for column in columns for text in column)
    return [{"text": text, "cells": [column.get(text) for column in columns]} for text in texts]
