"""The API under /api/v1: batches of streams in, sessions out, comments both ways; its document is its openapi.json."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI, Query
from ninja.errors import HttpError, ValidationError
from ninja.openapi.schema import OpenAPISchema
from pydantic import Field

import guard_core
from guard_core.corpus import changes_of, rows_of
from guard_core.corpus.report import report
from guard_core.counts import counted_compactions
from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts, conclusions, request_words
from guard_core.findings.gaps import clearings
from guard_core.recordings.formats.native.schema import line_schema
from guard_core.rules import report as report_of_rule
from guard_core.windows.window_evidence import judge_session
from inspector.api import comments, replays, schemas, sweeps
from inspector.api.asked import CHANGE_ERRORS, ERRORS, Limit, Offset, plain, project_in, session_in
from inspector.api.auth import RequestNotAllowed, project_of_caller
from inspector.api.sessions_asked import SessionFilter
from inspector.api.streaming import Reply, bad, reply_to
from inspector.jobs.recounting import ensure_recounted
from inspector.models import Session
from inspector.pages.shared.listing import SEVERITY
from inspector.project.trouble import trouble_of
from inspector.storage import corpus, explanations, loading
from inspector.streams.messages import (
    HIGHEST,
    MOST_LINES,
    NAME,
    BadMessage,
    check_name,
    from_json,
    from_lines,
)

JSON, LINES = "application/json", "application/x-ndjson"
Name = Annotated[str, Field(json_schema_extra={"pattern": f"^{NAME.pattern}$"})]  # check_name says it in words
LINE, LINE_PARTS = line_schema("#/components/schemas/{name}")
BODY = {
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "type": "object",
                    "required": ["first"],
                    "additionalProperties": False,
                    "properties": {
                        "first": {
                            "type": "integer",
                            "minimum": 0,
                            "maximum": HIGHEST,
                            "description": "number of the first line",
                        },
                        "lines": {"type": "array", "items": LINE, "maxItems": MOST_LINES},
                        "ended": {"type": "boolean", "description": "the agent has ended"},
                    },
                }
            },
            LINES: {"schema": {"type": "string", "description": f"lines as those of {JSON}"}},
        },
    },
    "responses": {
        413: {  # answered before the body is read: project.body_limit
            "description": "Content Too Large",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
}


REFUSED_METHOD = {  # answered by project.middleware
    "description": "Method Not Allowed",
    "headers": {
        "Allow": {"required": True, "schema": {"type": "string"}, "description": "the methods of this address"}
    },
    "content": {JSON: {"schema": {"$ref": "#/components/schemas/Problem"}}},
}


class Api(NinjaAPI):
    """With the parts of the lines of streams in its document, and what other methods of its addresses are answered."""

    def get_openapi_schema(self, **about: Any) -> OpenAPISchema:
        document = super().get_openapi_schema(**about)
        document["components"]["schemas"] |= LINE_PARTS
        document["components"]["responses"] = {"MethodNotAllowed": REFUSED_METHOD}
        for path in document["paths"].values():
            for operation in path.values():
                operation["responses"][405] = {"$ref": "#/components/responses/MethodNotAllowed"}
        return document


api = Api(
    title="Compaction Inspector",
    version="1",
    description="Send lines of running agents; read sessions, replays, sweeps and thresholds; write comments. "
    f"Engine {guard_core.__version__}. Steps and indexes count from 0.",
    docs_url=None,  # its page would load scripts from elsewhere
    auth=lambda request: project_of_caller(request),
    urls_namespace="api",
)


api.add_router("", comments.router)
api.add_router("", replays.router)
api.add_router("", sweeps.router)


@api.exception_handler(RequestNotAllowed)
def _not_allowed(request: HttpRequest, error: RequestNotAllowed) -> HttpResponse:
    return _problem(request, 403, str(error))


@api.exception_handler(Http404)
def _not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return _problem(request, 404, str(error) or "There is nothing at this address.")


@api.exception_handler(ValidationError)
def _invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    first: dict[str, Any] = next(iter(error.errors), {})
    place = " ".join(str(item) for item in first.get("loc", ()))
    return _problem(request, 400, f"{place}: {first.get('msg', 'not allowed')}."[:500])


@api.exception_handler(HttpError)
def _refused(request: HttpRequest, error: HttpError) -> HttpResponse:
    return _problem(request, error.status_code, str(error))


@api.exception_handler(loading.Outdated)
def _outdated(request: HttpRequest, error: loading.Outdated) -> HttpResponse:
    ensure_recounted(Session.objects.of(project_in(request)).get(pk=error.session_id))
    response = _problem(request, 503, "This session was stored by an earlier version and is being counted again.")
    response["Retry-After"] = "2"
    return response


@api.exception_handler(Exception)
def _unforeseen(request: HttpRequest, error: Exception) -> HttpResponse:
    if (trouble := trouble_of(error)) is None:
        raise error
    return _problem(request, trouble.status, trouble.words)


def _problem(request: HttpRequest, status: int, sentence: str) -> HttpResponse:
    return api.create_response(request, {"error": sentence}, status=status)


def _answer(request: HttpRequest, reply: Reply) -> HttpResponse:
    return api.create_response(request, reply.body, status=reply.status)


@api.post(
    "/sessions/{name}/events",
    response={
        200: schemas.Acknowledged,
        **CHANGE_ERRORS,
        409: schemas.Problem,
        410: schemas.Problem,
        415: schemas.Problem,
    },
    openapi_extra=BODY,
    summary="Send lines of a running agent's session",
)
def send_events(request: HttpRequest, name: Name, first: Offset = 0, ended: bool = False) -> HttpResponse:
    """Lines are numbered by the client from 0 and stored once, whole batches only; answered after the commit. `name` is
    the client's own id of the session. `first` and `ended` are read from the address where lines are sent. An
    invalid line is answered with 400, one that does not fit the lines before it with 409 and its `index`. Integers of
    more than 64 bits are stored as text; one of more than 300 digits is refused, and may be sent as text."""
    kind = request.content_type
    if kind not in (JSON, LINES):
        return _problem(request, 415, f"The content type is {JSON} or {LINES}.")
    if request.headers.get("Content-Encoding", "identity") != "identity":
        return _problem(request, 415, "The body is sent as it is, without a content encoding.")
    try:
        body = request.body
        message = from_json(body) if kind == JSON else from_lines(body, first, ended=ended)
        return _answer(request, reply_to(project_in(request), check_name(name), message))
    except BadMessage as error:
        return _answer(request, bad(error))


@api.get("/sessions", response={200: schemas.SessionList, **ERRORS}, summary="List the sessions, the newest first")
def sessions(
    request: HttpRequest, asked: Query[SessionFilter], offset: Offset = 0, limit: Limit = 100
) -> dict[str, Any]:
    """The sessions of the project that are not deleted, without their messages: all, or those that the filters name,
    which are those of the list's address (`/?severity=error&has=loop`), in another order where `sort` names one."""
    rows = asked.listing().sessions(project_in(request))
    some = [_row(row) for row in rows[offset : offset + limit]]
    return {"count": rows.count(), "sessions": some}


@api.get("/sessions/{session_id}", response={200: schemas.SessionRow, **ERRORS}, summary="One session")
def session(request: HttpRequest, session_id: UUID) -> dict[str, Any]:
    """What the list shows of a session."""
    return _row(session_in(request, session_id))


@api.get("/sessions/{session_id}/steps", response={200: schemas.StepList, **ERRORS}, summary="Model calls of a session")
def steps(
    request: HttpRequest,
    session_id: UUID,
    offset: Offset = 0,
    limit: Limit = 100,
) -> dict[str, Any]:
    """In their order, with the counts that the provider reported."""
    head = loading.load_only_head(session_in(request, session_id))
    own = [name for name in schemas.Step.model_fields if name not in ("step", "model")]
    some = [
        {"step": step, "model": call.model or head.model, **{name: getattr(call, name) for name in own}}
        for step, call in enumerate(head.calls[offset : offset + limit], offset)
    ]
    return {"count": len(head.calls), "steps": some}


@api.get(
    "/sessions/{session_id}/compactions",
    response={200: schemas.CompactionList, **ERRORS},
    summary="Recorded compactions of a session",
)
def compactions(request: HttpRequest, session_id: UUID) -> dict[str, Any]:
    """In their order, without mere edits of the history."""
    head = loading.load_only_head(session_in(request, session_id))
    counted = counted_compactions(head).compactions
    return {
        "compactions": [
            {
                "step": item.step,
                "trigger": item.trigger,
                **{name: getattr(head.compactions[item.place], name) for name in _COMPACTION},
            }
            for item in counted
        ]
    }


_COMPACTION = ("at", "kind", "evidence", "tokens_before", "tokens_after", "note")


@api.get(
    "/sessions/{session_id}/findings",
    response={200: schemas.Findings, **ERRORS},
    summary="Verdict and findings of a session",
)
def findings(request: HttpRequest, session_id: UUID) -> dict[str, Any]:
    """What is claimed of the recording, the gravest first, and the verdict."""
    row = session_in(request, session_id)
    facts = _facts(row)
    if not facts.ledger.step_count:
        return {"verdict": None, "findings": []}
    claims, verdict = conclusions(facts)
    whole = [{**_FINDING, **msgspec.to_builtins(finding)} for finding in claims]
    return {"verdict": {**_CLAIM, **msgspec.to_builtins(verdict)}, "findings": whole}


_CLAIM: dict[str, Any] = {"numbers": {}, "assumptions": []}  # what is left out where it is empty
_FINDING: dict[str, Any] = {**_CLAIM, "steps": [], "count": 1}


def _facts(row: Session) -> Facts:
    """What findings and rule are concluded from, under the window and the settings in use. Raises Outdated."""
    head, ledger = loading.load_head(row), loading.load_ledger(row)
    words = loading.request_words_of(row)
    if words is None:
        words = request_words(head, ledger, lambda: loading.stored_events(row))
    settings = explanations.settings_of(head, row.project_id)
    attribution = loading.load_attribution(row) or attribute(ledger)
    return Facts(head, ledger, attribution, judge_session(head, loading.window_in_use(row)), words, settings)


@api.get(
    "/sessions/{session_id}/rule", response={200: dict[str, Any], **ERRORS}, summary="The own rule of a session's agent"
)
def rule(request: HttpRequest, session_id: UUID) -> dict[str, Any]:
    """As the command `explain --json` prints it of one session: the rule of each stretch of calls (`from` and `to` are
    its first and last step, from 0) with its threshold as a sum and the source of each number, compactions beside the
    rule, what the recording proves of the threshold. Figures are tokens where no `unit` says otherwise."""
    row = session_in(request, session_id)
    explanation, head = explanations.load(row), loading.load_head(row)
    cleared = [item._asdict() for item in clearings(_facts(row))]
    return plain({**report_of_rule(head, explanation), "title": row.title, "cleared": cleared})


@api.get(
    "/triggers",
    response={200: dict[str, Any], **ERRORS},
    summary="Thresholds that the recordings of all sessions prove",
)
def triggers(request: HttpRequest) -> dict[str, Any]:
    """Rows, change points and compactions, as the command `triggers --json` prints them."""
    known = corpus.load(Session.objects.of(project_in(request)).filter(deleted=None)).stretches
    body = report(rows_of(known), changes_of(known), known)
    return plain(body)


_SEVERITIES: dict[int, str] = {value: name for name, (_, value) in SEVERITY.items()}


def _row(row: Session) -> dict[str, Any]:
    same = ("title", "format", "agent", "model", "events", "compactions", "prompt_tokens_max", "verdict")
    return {
        "id": str(row.pk),
        **{name: getattr(row, name) for name in same},
        "window": row.effective_window,
        "window_source": loading.window_in_use(row).source.value,
        "steps": row.calls,
        "peak_tokens": row.peak_tokens,
        "peak_source": row.peak_source,
        "peak_window": row.filled_window,
        "counted_in": row.counted_in,
        "threshold": row.threshold or None,
        "threshold_source": row.threshold_source,
        "assessed": row.is_assessed,
        "severity": _SEVERITIES.get(row.severity) if row.is_assessed else None,
        "started": row.started_at,
        "added": row.created,
        "url": row.get_absolute_url(),
    }
