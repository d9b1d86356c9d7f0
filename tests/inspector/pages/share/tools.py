"""A session with secrets, and its share as a draft and published."""

import re

import msgspec
from django.urls import reverse

from guard_core.recordings.formats import native
from inspector.jobs import kinds, queue
from inspector.models import Share
from tests.builders import bundled, user
from tests.guard_core.redaction.corpus import TRUE

GITHUB, MAIL = TRUE["github classic"][1], TRUE["e-mail"][1]
REPORTS = kinds.REPORTS.kind


def session_with_secrets():
    """A session whose first request, title and summaries hold a key, and whose request names a person."""
    whole = bundled("small-window")
    words = f"Always deploy with {GITHUB} and never write to {MAIL} on a Friday."
    first = msgspec.structs.replace(whole.events[0], parts=user(words).parts)
    compactions = tuple(
        msgspec.structs.replace(item, messages=tuple(user(f"So far: {GITHUB}") for _ in item.messages))
        for item in whole.compactions
    )
    return native.write(
        msgspec.structs.replace(
            whole, events=(first, *whole.events[1:]), compactions=compactions, title=f"Deploy {GITHUB}"
        )
    )


def drafted(client, row, query="", **form):
    """A share as the worker leaves it for the review."""
    answer = client.post(reverse("session_share", args=[row.pk]) + query, {"level": "text", "lifetime": "7d", **form})
    assert answer.status_code == 302, answer.text
    share = Share.unscoped.latest("created")
    assert "being created" in client.get(share.get_absolute_url()).text
    queue.run(REPORTS, str(share.pk))
    share.refresh_from_db()
    assert share.state == Share.State.DRAFT, share.message
    return share


def published(client, share):
    """Its link."""
    page = client.post(reverse("share_publish", args=[share.pk])).text
    return re.search(r"http://testserver(/r/[\w-]{43}/)\"", page)[1]
