"""Presets: settings of a replay under a name, saved from the what-if of a session and chosen on any of the project."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.views.decorators.http import require_POST

from inspector.accounts import access
from inspector.models import Preset, Session
from inspector.pages.errors.views import plain
from inspector.pages.session.frame import Frame
from inspector.pages.shared import saved_queries
from inspector.pages.shared.presets import WORDS, Offer, offers
from inspector.pages.shared.project import project_of
from inspector.replays.choice import NAMES, Choice, parse_choice
from inspector.replays.own_policy import own_policy

SAVE, DELETE, RESTORE = "session_preset_save", "session_preset_delete", "session_preset_restore"
RENAME = "session_preset_rename"


def menu(page: Frame) -> dict[str, Any]:
    """What `_saved_queries.html` shows on a session."""
    session, query, project = page.row.pk, _written(page.choice), project_of(page.request)
    rows = Preset.objects.of(project)
    return saved_queries.menu(
        WORDS,
        [_item(page, offer, query) for offer in offers(page.request)],
        query=query,
        save=reverse(SAVE, args=[session]),
        may_save=access.allows(page.request, SAVE),
        undo=saved_queries.offer(rows, project, page.request, reverse(RESTORE, args=[session])),
        refused=saved_queries.refusal(page.request.GET),
        help=f"Saves {page.choice.words()}. Everything else stays as the session or the policy has it.",
    )


def _item(page: Frame, offer: Offer, query: str) -> dict[str, Any]:
    row, choice, note = offer
    keys = [page.row.pk, row.pk]
    item = {
        "id": row.pk,
        "name": row.name,
        "delete": reverse(DELETE, args=keys),
        "rename": reverse(RENAME, args=keys),
        "note": note,
    }
    if choice is None:
        return {**item, "current": False}
    return {
        **item,
        "url": page.paths["overview"] + _written(choice),
        "current": _written(choice) == query,
        "words": choice.words(),
    }


@require_POST
def save_preset(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Save the settings of the what-if under a name; back to the session under them."""
    session, choice, errors = _asked(request, session_id)
    if errors:
        return plain(request, 422, "The preset was not saved", " ".join(errors.values()))
    rows = Preset.objects.of(project_of(request))
    return _to(session, choice, **saved_queries.store(request, WORDS, rows, _written(choice)))


@require_POST
def delete_preset(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """Delete a preset; back to the session under the settings that it is shown with, with an undo."""
    session, choice, _ = _asked(request, session_id)
    undo = saved_queries.take_away(get_object_or_404(Preset.objects.of(project_of(request)), pk=pk))
    return _to(session, choice, undo=undo)


@require_POST
def rename_preset(request: HttpRequest, session_id: UUID, pk: UUID) -> HttpResponse:
    """Give a preset another name; back to the session under the settings that it is shown with."""
    session, choice, _ = _asked(request, session_id)
    rows = Preset.objects.of(project_of(request))
    return _to(session, choice, **saved_queries.rename(request, WORDS, rows, get_object_or_404(rows, pk=pk)))


@require_POST
def restore_preset(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """Bring back a preset that was deleted within a day; back to the session under the settings it is shown with."""
    session, choice, _ = _asked(request, session_id)
    project = project_of(request)
    rows = Preset.objects.of(project)
    deleted = saved_queries.taken_away(rows, project, request.POST.get("undo", ""))
    if deleted is None:  # brought back already, too late, or the name is taken by now
        return _to(session, choice)
    return _to(session, choice, **saved_queries.bring_back(WORDS, rows, deleted))


def _asked(request: HttpRequest, session_id: UUID) -> tuple[Session, Choice, dict[str, str]]:
    session = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    given = saved_queries.given_query(request)
    return session, *parse_choice({name: given.get(name, "") for name in NAMES}, own_policy(session))


def _written(choice: Choice) -> str:
    """The query string of a choice with its policy by name: a preset is for any session."""
    return msgspec.structs.replace(choice, policy=choice.kind.name, profile=choice.in_profile).query()


def _to(session: Session, choice: Choice, **more: str) -> HttpResponse:
    return HttpResponseRedirect(f"{session.get_absolute_url()}{choice.query(**more)}{saved_queries.place(more)}")
