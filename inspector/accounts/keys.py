"""Keys of programs: made, shown once, looked up by their hash, revoked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta

from django.utils import timezone

from inspector.models import ApiKey, Project
from inspector.project.tokens import hash_of, new_token

BEGIN = "ci_"  # so that a search for secrets knows one
PREFIX_CHARS = 9  # of the key, kept to know it again
SCHEME = "bearer "
USED_EVERY = timedelta(minutes=1)  # the moment of the last use is stored to the minute


def make(
    project: Project, name: str, scopes: Iterable[str], by: str, lifetime: timedelta | None = None
) -> tuple[ApiKey, str]:
    """A new key and its text, which is given this once. `lifetime` None: until it is revoked."""
    text = BEGIN + new_token()
    row = ApiKey.objects.of(project).create(
        name=name,
        prefix=text[:PREFIX_CHARS],
        key_hash=hash_of(text),
        scopes=" ".join(sorted(scopes)),
        made_by=by,
        expires=None if lifetime is None else timezone.now() + lifetime,
    )
    return row, text


def given(headers: Mapping[str, str]) -> str | None:
    """The key of a request (`Authorization: Bearer ci_…`), right or wrong; None where the header is missing."""
    header = headers.get("Authorization")
    if header is None:
        return None
    return header[len(SCHEME) :].strip() if header.lower().startswith(SCHEME) else ""


def opened_by(text: str) -> ApiKey | None:
    """The key with this text that opens something now, its use noted; None for any other text."""
    row = ApiKey.unscoped.select_related("project").filter(key_hash=hash_of(text)).first()
    now = timezone.now()
    if row is None or not row.is_open(now):
        return None
    if row.last_used is None or now - row.last_used > USED_EVERY:
        ApiKey.objects.row(row).update(last_used=now)
    return row


def revoke(row: ApiKey) -> bool:
    """End a key at once; False where it had ended."""
    return bool(ApiKey.objects.row(row).filter(revoked=None).update(revoked=timezone.now()))
