"""Publishes a share under a token, revokes it, and finds what a token opens.

A token has 256 random bits, and only its SHA-256 is stored: whoever reads the database cannot open a share. What is
unknown, revoked, expired or deleted is found by the same one query, and looks the same from outside.
"""

from __future__ import annotations

import hashlib
from datetime import timedelta

import msgspec
from django.contrib.auth.hashers import check_password, make_password
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from inspector.models import Share
from inspector.project.tokens import hash_of, new_token
from inspector.sharing.making import note, rendered, reviewed
from inspector.storage.compression import decompressed

MOST_FAILURES = 5  # wrong passwords; then it answers none for a while
PAUSE = timedelta(minutes=5)
DRAFTS_FOR = timedelta(days=7)  # they hold what is not hidden yet
HEAD = (
    "pk",
    "project",
    "session",
    "state",
    "revoked",
    "expires",
    "password",
    "failures",
    "failed_at",
    "session__deleted",
)


def publish(share: Share) -> str:
    """Publish a draft as it is; its token, which is given this once. "" where it is not a draft any more."""
    report, _ = reviewed(share)
    token, now = new_token(), timezone.now()
    values = {
        "state": Share.State.PUBLISHED,
        "files": msgspec.msgpack.encode(rendered(report)),
        "draft": None,
        "token_hash": hash_of(token),
        "published": now,
        "expires": now + timedelta(seconds=share.lifetime),
    }
    with transaction.atomic():
        # what was kept may have changed since it was read
        drafts = Share.objects.row(share).filter(state=Share.State.DRAFT, request=bytes(share.request))
        if not drafts.update(**values):
            return ""
        hidden = sum(item.count for item in report.hidden or ())
        note(share, "published", f"{hidden:,} places hidden")
    return token


def revoke(share: Share) -> None:
    """End a share at once, with everything that was rendered."""
    with transaction.atomic():
        now = timezone.now()
        if Share.objects.row(share).filter(revoked=None).update(revoked=now, files=None, draft=None):
            note(share, "revoked")


def drop_ended() -> None:
    """Delete what was rendered of expired shares, and drafts that were not published within DRAFTS_FOR."""
    now = timezone.now()
    Share.unscoped.filter(expires__lte=now, files__isnull=False).update(files=None)
    Share.unscoped.filter(state=Share.State.DRAFT, created__lte=now - DRAFTS_FOR).delete()


def opened_by(token: str) -> Share | None:
    """The share that a token opens now, without its files; None for any other token."""
    share = Share.unscoped.select_related("session").only(*HEAD).filter(token_hash=hash_of(token)).first()
    if share is None or not share.is_open(timezone.now()):
        return None
    return share if share.session is None or share.session.deleted is None else None


def file_of(share: Share, name: str, *, is_view: bool) -> bytes | None:
    """One form of a published report; a view of it is counted."""
    body = Share.objects.row(share).values_list("files", flat=True).first()
    if body is None:
        return None
    if is_view:
        Share.objects.row(share).update(views=F("views") + 1, last_view=timezone.now())
    files = msgspec.msgpack.decode(bytes(body), type=dict[str, bytes])
    return decompressed(files[name]) if name in files else None


def hashed_password(password: str) -> str:
    """A password as it is stored; "" for none."""
    return make_password(password) if password else ""


def is_paused(share: Share) -> bool:
    """Were there so many wrong passwords that none is looked at for a while."""
    is_recent = share.failed_at is not None and timezone.now() < share.failed_at + PAUSE
    return is_recent and share.failures >= MOST_FAILURES


def is_password(share: Share, password: str) -> bool:
    """Is this the password of a share. A wrong one is counted first, so that tries at the same time count, too."""
    now = timezone.now()
    rows = Share.objects.row(share)
    rows.filter(failed_at__lt=now - PAUSE).update(failures=0)
    if not rows.filter(Q(failures__lt=MOST_FAILURES)).update(failures=F("failures") + 1, failed_at=now):
        return False
    if not check_password(password, share.password):
        return False
    rows.update(failures=F("failures") - 1)
    return True


def proof_of(share: Share) -> str:
    """What a cookie holds of a share whose password was given: it is worth nothing once the password is another."""
    return hashlib.sha256(f"{share.pk} {share.password}".encode()).hexdigest()
