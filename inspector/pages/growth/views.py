"""How far a session has grown: one small row, asked by pages that show it."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, JsonResponse
from django.views.decorators.http import require_safe

from guard_core.findings.arising import Alert
from inspector.models import Session
from inspector.pages.shared.kinds import kind_name
from inspector.pages.shared.numbers import step_number
from inspector.pages.shared.project import project_of
from inspector.replays.analysis import stay_at_hand
from inspector.storage.outlook import Outlook, outlook_of

MOST_DIGITS = 9  # of a number of steps


@require_safe
def growth(request: HttpRequest, session_id: UUID) -> JsonResponse:
    """`steps`: model calls of the session now; `revision`: a number that rises with each change of what is stored. With
    `known`, the number of steps that the page shows: `alerts`, the near misses, overflows and loops at later ones, and
    `left`, how many calls are left until the threshold of the own rule, in words, where that is known; both are as of
    at most OUTLOOK_SECONDS ago. Only pages in sight ask: what they show stays at hand."""
    row = Session.objects.of(project_of(request)).filter(pk=session_id, deleted=None).first()
    if row is None:
        raise Http404("There is no such session.")
    stay_at_hand(row)
    known = request.GET.get("known", "")
    is_number = known.isascii() and known.isdigit() and len(known) <= MOST_DIGITS
    has_grown = is_number and row.calls > int(known)
    outlook = outlook_of(row) if has_grown else Outlook()
    answer = {
        "steps": row.calls,
        "revision": row.revision,
        "alerts": [_shown(row, alert) for alert in outlook.alerts if alert.is_new(int(known))],
        "left": outlook.left.calls.words if outlook.left and outlook.left.calls else "",
    }
    response = JsonResponse(answer)
    response.headers["Cache-Control"] = "no-store"
    return response


def _shown(row: Session, alert: Alert) -> dict[str, Any]:
    return {
        "key": f"{row.pk} {alert.finding.kind} {alert.first}",  # the same while it lasts, on every page
        "kind": alert.finding.kind,
        "name": kind_name(alert.finding.kind),
        "step": step_number(alert.last),
        "sentence": alert.finding.sentence,
    }
