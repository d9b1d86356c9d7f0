"""A session in the project's own format: read again it is the same session, by its digest."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from guard_core.recordings.formats import native
from guard_core.redaction import Redactor, redacted_session
from inspector.models import Session
from inspector.pages.shared.attachments import attachment
from inspector.pages.shared.project import project_of
from inspector.storage import loading, storing

# Messages of a session that is written in a request; a longer one is exported by the command. Ours: about a second of
# one core, of which the search for secrets takes half a millisecond a message.
MOST_MESSAGES, MOST_SEARCHED = 20_000, 2_000


@require_safe
def session_export(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """The session as JSON Lines; `?redact=1` without keys, passwords, e-mail addresses and what else is found."""
    sessions = Session.objects.of(project_of(request)).filter(deleted=None).select_related("recording")
    row = get_object_or_404(sessions, pk=session_id)
    redacts = request.GET.get("redact", "") not in ("", "0")
    most = MOST_SEARCHED if redacts else MOST_MESSAGES
    if row.events > most:
        context = {"session": row, "redacts": redacts, "most": most}
        return render(request, "inspector/export/long.html", context, status=413)
    storing.ensure_current(row)
    session = loading.load_session(row)
    if redacts:
        session = redacted_session(session, Redactor())
    body = b"".join(native.write_all([session]))
    name = f"session-{str(row.pk)[:8]}{'-redacted' if redacts else ''}.jsonl"
    return attachment(HttpResponse(body, content_type="application/jsonl"), name)
