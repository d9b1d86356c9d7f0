"""Replays of a session: of every policy side by side, and one under the settings of the address, step by step.

A replay is stored nowhere under an id: it follows from session and settings, so its settings are its address, by the
names that pages use (`/policies/` lists them). One that takes long is answered with 202 until it is done.
"""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from django.http import HttpRequest
from msgspec.structs import replace
from ninja import Query, Router, Schema
from ninja.errors import HttpError
from pydantic import Field

from guard_core import __version__
from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.errors import GuardError
from guard_core.policies import POLICIES
from guard_core.sweep import figures_of
from guard_core.trace import INDEX, RECORD_VIEWS, SWITCH, Column, CompactionRecord, Trace
from guard_core.windows.call_windows import WindowWarning, windows_words
from inspector.api import schemas
from inspector.api.asked import ERRORS, UNDER_WAY, Limit, Offset, plain, session_in
from inspector.pages.comparison import presenter as comparison
from inspector.replays.analysis import Analysis, analyse
from inspector.replays.choice import NAMES, PROFILES, SUMMARIES, no_longer_taken, parse_choice
from inspector.replays.comparing import comparison_of
from inspector.replays.own_policy import own_policy

router = Router()
CONTRADICTION = {409: schemas.Problem}  # a setting that the policy does not have or use
PAGING = ("offset", "limit")
# A number is asked for here; pages also take "200k".
Window = Annotated[int | None, Field(ge=MIN_WINDOW, le=MAX_WINDOW)]


class ReplaySettings(Schema):
    """The settings that every policy has; those of one policy are further parameters."""

    policy: Annotated[str, Field(json_schema_extra={"enum": ["", *POLICIES]})] = ""
    profile: Annotated[str, Field(json_schema_extra={"enum": ["", *sorted(PROFILES)]})] = ""
    window: Window = None
    summary: Annotated[str, Field(json_schema_extra={"enum": list(SUMMARIES)})] = ""


@router.get(
    "/sessions/{session_id}/replays",
    response={200: schemas.Replays, **UNDER_WAY, **ERRORS},
    summary="Replays of a session under every policy",
)
def replays(request: HttpRequest, session_id: UUID, window: Window = None) -> dict[str, Any]:
    """The recording and every policy under its defaults, a row each, as the page of all policies shows them."""
    choice, errors = parse_choice({"window": str(window or "")})
    _refuse(errors)
    return comparison.plain(comparison_of(session_in(request, session_id), choice, all_profiles=False))


@router.get(
    "/sessions/{session_id}/replay",
    response={200: schemas.Replay, **UNDER_WAY, **ERRORS, **CONTRADICTION},
    summary="One replay",
)
def replay(request: HttpRequest, session_id: UUID, settings: Query[ReplaySettings]) -> dict[str, Any]:
    """What a policy makes of the session. Settings of the policy are further parameters, by their names in addresses of
    pages. What is left out is the default: the policy of the session's own agent in the profile of its version, and
    ContextGuard where that is not known."""
    done = _analysed(request, session_id)
    trace = done.replayed
    windows = done.facts.replay(trace).call_windows
    divergence = done.data.replayed.divergence if done.data.replayed is not None else None
    return {
        "policy": trace.policy,
        "settings": trace.settings,
        "window": trace.window,
        "window_source": done.window.source.value,
        "windows": plain(windows),
        "engine": __version__,
        "digest": trace.digest(),
        "steps": len(trace),
        "first_difference": divergence,
        "figures": plain(figures_of(trace)),
        "findings": [plain(finding) for finding in done.replayed_findings],
        "notes": [*filter(None, [windows_words(windows, WindowWarning.TRACE)]), *trace.notes],
        "columns": [
            {"name": column.name, "meaning": column.meaning, "unit": "" if column.words else column.unit}
            for column in _shown(trace)
        ],
    }


@router.get(
    "/sessions/{session_id}/replay/steps",
    response={200: schemas.ReplayRows, **UNDER_WAY, **ERRORS, **CONTRADICTION},
    summary="Steps of one replay",
)
def replay_steps(
    request: HttpRequest,
    session_id: UUID,
    settings: Query[ReplaySettings],
    offset: Offset = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """A row for each model call, with the columns that `replay` describes; None where there is no such number."""
    trace = _analysed(request, session_id).replayed
    shown = [(column, trace.columns[column.name]) for column in _shown(trace)]
    rows = [
        {"step": step, **{column.name: _value(column, values[step]) for column, values in shown}}
        for step in range(offset, min(offset + limit, len(trace)))
    ]
    return {"count": len(trace), "rows": rows}


@router.get(
    "/sessions/{session_id}/replay/compactions",
    response={200: schemas.ReplayRows, **UNDER_WAY, **ERRORS, **CONTRADICTION},
    summary="Compactions of one replay",
)
def replay_compactions(
    request: HttpRequest,
    session_id: UUID,
    settings: Query[ReplaySettings],
    offset: Offset = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """A row for each, with its passes; tokens are the policy's own estimates."""
    records = _analysed(request, session_id).replayed.compactions
    rows = [_without_views(record) for record in records[offset : offset + limit]]
    return {"count": len(records), "rows": rows}


def _without_views(record: CompactionRecord) -> dict[str, Any]:
    """A record as JSON has it. Its views are taken away before: long ones are not values that can be written."""
    passes = tuple(replace(one, summariser_view=()) for one in record.passes)
    values = plain(replace(record, passes=passes, **dict.fromkeys(RECORD_VIEWS, ())))
    return {name: value for name, value in values.items() if name not in RECORD_VIEWS}


def _analysed(request: HttpRequest, session_id: UUID) -> Analysis:
    """The session under the settings of the address. Raises HttpError for one that is not taken."""
    row = session_in(request, session_id)
    given = {name: value for name, value in request.GET.dict().items() if name not in PAGING}
    if unknown := [name for name in given if name not in NAMES]:
        raise HttpError(400, f"{unknown[0][:100]!r} is not a setting of a replay.")
    own = own_policy(row)
    choice, errors = parse_choice(given, own)
    _refuse(errors)
    if refused := [name for name, value in no_longer_taken(given, own).items() if value]:
        raise HttpError(409, f"{refused[0]!r} has no effect under policy {choice.kind.name!r}.")
    try:
        return analyse(row, choice)
    except GuardError as error:
        raise HttpError(409, f"{str(error)[:1].upper()}{str(error)[1:]}.") from error


def _refuse(errors: dict[str, str]) -> None:
    for name, words in errors.items():
        raise HttpError(400, f"{name}: {words}")


def _shown(trace: Trace) -> list[Column]:
    """The columns that mean something outside of the trace."""
    return [column for column in trace.all_columns if column.name != "head"]


def _value(column: Column, value: Any) -> float | int | bool | str | None:
    if column.unit == SWITCH:
        return bool(value)
    if column.unit == INDEX and column.words:
        return column.words[int(value)]
    if column.real:
        return float(value) if value == value else None
    return None if column.none is not None and value == column.none else int(value)
