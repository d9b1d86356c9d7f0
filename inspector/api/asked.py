"""What the addresses of the API share: numbers in an address, rows of the caller's project, errors of all."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest
from pydantic import Field

from inspector.api import schemas
from inspector.models import Project, Session
from inspector.streams.messages import HIGHEST

MOST_ROWS = 1_000
# 401 and 429 are answers of team mode (`accounts.gate`): no or no known key, and too many changes within ten seconds.
ERRORS = dict.fromkeys((400, 401, 403, 404, 503, 507), schemas.Problem)
CHANGE_ERRORS = {**ERRORS, 429: schemas.Problem}
UNDER_WAY = {202: schemas.UnderWay}  # of what may take long
Offset = Annotated[int, Field(ge=0, le=HIGHEST)]
Limit = Annotated[int, Field(ge=1, le=MOST_ROWS)]


def project_in(request: HttpRequest) -> Project:
    """The project that the authentication gave."""
    project: Project = request.auth  # type: ignore[attr-defined]  # Django's class does not know it
    return project


def session_in(request: HttpRequest, session_id: UUID) -> Session:
    """A session of the project that is on its list. Raises Http404."""
    row = Session.objects.of(project_in(request)).filter(pk=session_id, deleted=None).first()
    if row is None:
        raise Http404("There is no such session.")
    return row


def plain(value: object) -> dict[str, Any]:
    """A value of the engine as JSON has it."""
    built: dict[str, Any] = msgspec.to_builtins(value)
    return built
