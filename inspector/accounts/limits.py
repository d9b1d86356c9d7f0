"""Limits on how often something is done: counted in the database, so that every process of a server counts alike."""

from __future__ import annotations

import hashlib
import math
from datetime import timedelta
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from inspector.accounts.access import Caller
from inspector.jobs.heartbeats import AHEAD
from inspector.models import Spent


class Limit(NamedTuple):
    """At most so many times in a window of time, which begins with the first."""

    name: str
    most: int
    window: timedelta


# Five tries, then a pause of five minutes, as Phoenix does (docs/features/authentication). They are counted for an
# account and an address together, so that a stranger cannot lock anyone out; the two others stop guesses from many
# addresses at one account, and from one address at many accounts.
SIGN_IN = Limit("sign-in", 5, timedelta(minutes=5))
SIGN_IN_ACCOUNT = Limit("sign-in of an account", 100, timedelta(hours=1))
SIGN_IN_ADDRESS = Limit("sign-in from an address", 50, timedelta(minutes=15))
# What failed attempts may add to the audit log, which is kept.
RECORDED_ADDRESS = Limit("failures on record of an address", 20, timedelta(minutes=15))
RECORDED = Limit("failures on record", 500, timedelta(hours=1))
CHANGES_WINDOW = timedelta(seconds=10)


def spend(limit: Limit, *who: str) -> int:
    """Count one; 0, or the seconds to wait where there were too many already. A refused one is not counted. A count
    that would last longer than its window is of a clock that has been set back since, and has ended."""
    key, now = _key(limit, who), timezone.now()
    current = Q(ends__gt=now, ends__lte=now + limit.window + AHEAD)
    if Spent.objects.filter(current, key=key, count__lt=limit.most).update(count=F("count") + 1):
        return 0
    with transaction.atomic():
        Spent.objects.filter(~current, key=key).delete()
        row, _ = Spent.objects.get_or_create(key=key, defaults={"ends": now + limit.window})
        if Spent.objects.filter(key=key, count__lt=limit.most).update(count=F("count") + 1):
            return 0
    return max(1, math.ceil((row.ends - now).total_seconds()))


class TooMany(NamedTuple):
    """Why something is refused, and the seconds to wait."""

    reason: str
    wait: int


def spend_change(caller: Caller) -> TooMany | None:
    """Count a request, or a frame of a socket, that changes something; why it is refused where there were too many."""
    most = settings.RATE_CHANGES if caller.key is None else settings.RATE_INGEST
    who = f"key {caller.key.pk}" if caller.key is not None else f"account {caller.account.pk}" if caller.account else ""
    wait = spend(Limit("changes", most, CHANGES_WINDOW), who)
    return TooMany(f"More than {most:,} changes in ten seconds.", wait) if wait else None


def forget(limit: Limit, *who: str) -> None:
    """Begin to count anew."""
    Spent.objects.filter(key=_key(limit, who)).delete()


def drop_ended() -> None:
    """Remove counts whose window is over."""
    Spent.objects.filter(ends__lte=timezone.now()).delete()


def _key(limit: Limit, who: tuple[str, ...]) -> str:
    return hashlib.sha256("\0".join((limit.name, *who)).encode("utf-8", "replace")).hexdigest()
