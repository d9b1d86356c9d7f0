"""Failed imports taken off the front page: a browser remembers them for as long as they would be shown there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from inspector.models import Import, Project

SHOWN_FOR = timedelta(minutes=15)  # after it has failed, an import is on the front page for so long
COOKIE = "dismissed"
MOST_KEYS = 40  # imports dismissed one by one that a cookie and an address have room for; the oldest are shown again
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Dismissed:
    """What a person has dismissed: all that failed before a moment (microseconds since 1970), and single imports."""

    before: int = 0
    keys: tuple[UUID, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Dismissed:
        """Read what `str` wrote; text that makes no sense dismisses nothing."""
        moment, *keys = text[:2_000].split(".")
        known = moment.isascii() and moment.isdigit() and len(moment) <= 16
        try:
            return cls(int(moment) if known else 0, tuple(UUID(key) for key in keys[-MOST_KEYS:]))
        except ValueError:
            return cls()

    def __str__(self) -> str:
        return ".".join([str(self.before), *(key.hex for key in self.keys)])

    def shown(self, failed: QuerySet[Import]) -> QuerySet[Import]:
        """The failed imports that are left."""
        return failed.filter(finished__gte=_EPOCH + self.before * _MICROSECOND).exclude(pk__in=self.keys)

    def and_one(self, key: UUID) -> Dismissed:
        return replace(self, keys=(*(other for other in self.keys if other != key), key)[-MOST_KEYS:])

    def and_all(self) -> Dismissed:
        """Everything that has failed until now."""
        return Dismissed((timezone.now() - _EPOCH) // _MICROSECOND + 1)


def failed_lately(project: Project) -> QuerySet[Import]:
    """The imports of a project that failed in the last minutes, dismissed or not. Not the lenient ones (`watch`
    sends so) of a file by whose name as many bytes or more were imported since: it was still being written."""
    mine = Import.objects.of(project)
    later = mine.filter(state=Import.State.DONE, strict=False, created__gte=OuterRef("created"))
    same = later.filter(name=OuterRef("name"), folder=OuterRef("folder"), total__gte=OuterRef("total"))
    failed = mine.filter(state=Import.State.FAILED, finished__gte=timezone.now() - SHOWN_FOR)
    return failed.exclude(Exists(same), strict=False)
