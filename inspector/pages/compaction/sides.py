"""What a comparison of compactions is about: those that an address names, and the figures of each."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import parse_qsl
from uuid import UUID

from django.http import Http404, HttpRequest

from guard_core.bridge import Bridge
from guard_core.windows.prices import UNIT
from inspector.pages.compaction import presenter
from inspector.pages.compaction.bridge import NAMES
from inspector.pages.compaction.presenter import PageCompaction
from inspector.pages.compaction.views import bridge_of, count_of, item_of, no_such
from inspector.pages.session.frame import SIDES, Frame, frame_of
from inspector.pages.shared.numbers import compaction_index, compaction_number
from inspector.pages.shared.requests import DROPPED, KEPT, REWRITTEN, SUMMARISED

MOST = 4
DOLLARS, SHARE = "dollars", "share"
SAVED = "saved since"
REMAINING = "remaining, of the request without it"
LONGEST = 600  # characters of one parameter that are read
MOST_SETTINGS = 40  # of one address that are read
# `recorded/2` and `replayed/2` are of this session under the settings of the page; an address, or `SESSION/2`, names
# one of any session, under its own settings where `side=replayed` says that it is of a replay.
_OWN = re.compile(r"(?P<side>recorded|replayed)/(?P<number>[0-9]{1,6})")
_ELSEWHERE = re.compile(r"(?:.*/s/)?(?P<session>[0-9a-fA-F-]{36})/(?:c/)?(?P<number>[0-9]{1,6})(?:/.*)?")


class CompactionSide(NamedTuple):
    """One compaction of the comparison, on the page of its session."""

    letter: str
    page: Frame
    item: PageCompaction

    @property
    def url(self) -> str:
        """The address of its page."""
        return self.page.compaction_url(self.item.index, self.item.side)

    @property
    def name(self) -> str:
        """What people call it."""
        kind = "Compaction" if self.item.recorded else "Replayed compaction"
        return f"{kind} {compaction_number(self.item.index):,}"

    @property
    def settings(self) -> str:
        """The settings of a replayed one, in words."""
        return "" if self.item.recorded else self.page.choice.words()


class CompactionFigures(NamedTuple):
    """One figure of each compaction, None where it is not known: tokens, messages, an amount of money in the unit of
    `windows.prices`, or a share."""

    name: str
    values: Sequence[float | None]
    unit: str = ""  # DOLLARS, SHARE

    def plain(self) -> list[float | None]:
        """The values as files have them: money in dollars."""
        if self.unit != DOLLARS:
            return list(self.values)
        return [None if value is None else value / (UNIT * 1_000_000) for value in self.values]


def sides_of(request: HttpRequest, first: CompactionSide) -> tuple[list[CompactionSide], list[str]]:
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
            errors.append(f"{side.name} is already compared.")
        else:
            sides.append(side)
    if len(texts) >= MOST:
        errors.append(f"At most {MOST} are compared; the others are left out.")
    return sides, errors


def _key(side: CompactionSide) -> tuple[UUID, str]:
    return side.page.row.pk, side.url


def _side(request: HttpRequest, page: Frame, text: str, letter: str) -> CompactionSide:
    """What one parameter names. Raises ValueError with a sentence where there is no such compaction."""
    side = "recorded"
    if own := _OWN.fullmatch(text):
        side, number = own["side"], int(own["number"])
    elif there := _ELSEWHERE.fullmatch(text.partition("?")[0]):
        number, query = int(there["number"]), text.partition("?")[2]
        settings = dict(parse_qsl(query)) if query.count("&") < MOST_SETTINGS else {}
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
    return CompactionSide(letter, page, item_of(page, side, compaction_index(number)))


def figures_of(sides: Sequence[CompactionSide]) -> list[CompactionFigures]:
    """Every figure of each compaction."""
    bridges = [bridge_of(side.page, side.item) for side in sides]
    return [
        *_tokens(bridges),
        *_messages(sides),
        *_prices(sides),
        CompactionFigures(REMAINING, list(map(_share, bridges)), SHARE),
    ]


def _share(bridge: Bridge) -> float | None:
    """What remains, as a share of the request without the compaction."""
    return None if bridge.is_blind or not bridge.uncompacted else bridge.total("after") / bridge.uncompacted


def _tokens(bridges: Sequence[Bridge]) -> list[CompactionFigures]:
    """Prompt tokens: the requests around each, and what it took from each part and put in; they add up."""
    whole = [None if bridge.is_blind else bridge for bridge in bridges]
    return [
        CompactionFigures(
            "last request before, tokens", [one.total("before") if one and one.before_source else None for one in whole]
        ),
        CompactionFigures("request without it, tokens", [None if one is None else one.uncompacted for one in whole]),
        *(
            CompactionFigures(
                f"removed: {title[:1].lower()}{title[1:]}, tokens",
                [None if one is None else _removed(one, name) for one in whole],
            )
            for name, title in NAMES.items()
        ),
        CompactionFigures("inserted, tokens", [None if one.is_sealed else one.total("inserted") for one in bridges]),
        CompactionFigures("not explained by the file, tokens", [one.total("unexplained") for one in bridges]),
        CompactionFigures("first request after, tokens", [one.total("after") for one in bridges]),
    ]


def _removed(bridge: Bridge, name: str) -> int:
    """What a compaction removed of a part, in prompt tokens; 0 where the bridge has no such part."""
    return next((part.removed for part in bridge.parts if part.name == name), 0)


def _messages(sides: Sequence[CompactionSide]) -> list[CompactionFigures]:
    """How many messages met each fate."""
    columns = []
    for side in sides:
        ledger, item = side.page.analysis.ledger, side.item
        states = presenter.states_of(item, presenter.columns_of(item), ledger)
        columns.append({name: int((states == name).sum()) for name in (KEPT, REWRITTEN, SUMMARISED, DROPPED)})
    return [CompactionFigures(f"messages {name}", [column[name] for column in columns]) for name in columns[0]]


def _prices(sides: Sequence[CompactionSide]) -> list[CompactionFigures]:
    """What each cost at once and saved up to the next compaction, where its price is known."""
    known = []
    for side in sides:
        analysis = side.page.analysis
        prices = analysis.recorded_payback if side.item.recorded else analysis.replayed_payback
        price = next((one for one in prices if one.index == side.item.index), None)
        known.append(price if analysis.prices.has_prices else None)
    return [
        CompactionFigures("cost at once", [None if one is None else one.paid for one in known], DOLLARS),
        CompactionFigures(SAVED, [None if one is None else one.saved for one in known], DOLLARS),
    ]
