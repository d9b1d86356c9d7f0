"""Sharing: the form of a session, the review of what is hidden, the link, revoking it, and the list."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST, require_safe

from guard_core.sessions import Provenance
from inspector.accounts import audit
from inspector.models import Share
from inspector.pages.session.frame import Frame, frame
from inspector.pages.share import form
from inspector.pages.shared import comments
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.project import project_of
from inspector.pages.shared.reports import report_answer
from inspector.pages.shared.share_fields import LIFETIME_WORDS
from inspector.sharing import making, publishing
from inspector.storage import explanations, loading

SHOWN = 100  # shares in the list
SHOWN_ENTRIES = 300  # values in the review; kinds hold all
WAITING = (Share.State.RECEIVED, Share.State.RUNNING)


@require_http_methods(["GET", "HEAD", "POST"])
def share_new(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """What the report of a session is to hold; a POST has it made. The settings of the address give its replay."""
    page = frame(request, session_id)
    options, count = _options(page)
    errors: dict[str, str] = {}
    typed = {"level": "numbers", "lifetime": "7d"}
    typed |= {"scope": request.GET.get("scope", ""), "compaction": request.GET.get("compaction", "")}
    typed["step"] = request.GET.get("step", "")
    open_ones = comments.as_remarks(page.row)
    if request.GET.get("remarks") == "comments":
        typed["remarks"] = "\n".join(open_ones)
    if request.method == "POST":
        typed = {name: str(value) for name, value in request.POST.items()}
        wanted, errors = form.parse(typed, options, page.count, count)
        if wanted is not None:
            password = publishing.hashed_password(wanted.password)
            row = making.ask_for(project_of(request), page.row, wanted.request, wanted.lifetime, password)
            audit.note(request, "share made", f"{row.pk}: {typed['level']}")
            return redirect(row)
    listed = Share.objects.of(project_of(request)).filter(session=page.row).order_by("-created")[:SHOWN]
    context = {
        **page.context("share"),
        "typed": typed,
        "errors": errors,
        "levels": form.LEVEL_WORDS.items(),
        "scopes": form.SCOPES.items(),
        "steps": page.count,
        "lifetimes": LIFETIME_WORDS.items(),
        "replay": page.choice.words() if options["policy"] else "",
        "compactions": count,
        "remarks_url": page.paths["share"] + page.choice.query(remarks="comments") if open_ones else "",
        "shares": [_row(item) for item in listed],
    }
    return render(request, "inspector/share/new.html", context, status=422 if errors else 200)


def _options(page: Frame) -> tuple[dict[str, Any], int]:
    """What the report is made with by the address, and how many compactions its last side has."""
    choice, row = page.choice, page.row
    window = loading.window_in_use(row)
    stated = int(choice.window) if choice.window else window.value if window.source is Provenance.USER else None
    replayed = choice.changed and bool(page.count)
    return {
        "policy": choice.kind.name if replayed else "",
        "settings": choice.engine_settings(page.analysis.facts) if replayed else {},
        "summary": choice.summary or "recorded",
        "window": stated,
        "rule": explanations.settings_of(page.analysis.head, row.project_id),
    }, len(page.analysis.replayed.compactions) if replayed else page.compactions.total


@require_GET
def shares(request: HttpRequest) -> HttpResponse:
    """All shares, the newest first."""
    rows = Share.objects.of(project_of(request)).select_related("session").defer("draft", "files").order_by("-created")
    return render(request, "inspector/share/list.html", {"shares": [_row(item) for item in rows[:SHOWN]]})


@require_GET
def share(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One share: being made, to be reviewed, or published."""
    return _page(request, _share(request, pk))


def _page(request: HttpRequest, row: Share, token: str = "", status: int = 200) -> HttpResponse:
    context: dict[str, Any] = {"share": row, "item": _row(row), "waiting": row.state in WAITING}
    if row.is_draft:
        report, entries = making.reviewed(row)
        kept = set(making.request_of(row).kept)
        kinds = dict.fromkeys(entry.kind for entry in entries)
        context |= {
            "report": report,
            "kinds": [
                {
                    "name": kind,
                    "count": sum(entry.count for entry in entries if entry.kind == kind),
                    "kept": kind in kept,
                }
                for kind in kinds
            ],
            "entries": [
                {"entry": entry, "kept": entry.key in kept or entry.kind in kept} for entry in entries[:SHOWN_ENTRIES]
            ],
            "more": counted(len(entries) - SHOWN_ENTRIES, "more value") if len(entries) > SHOWN_ENTRIES else "",
        }
    if token:
        context["link"] = request.build_absolute_uri(reverse("report", args=[token]))
        context["files"] = making.NAMES
    context["records"] = list(row.records.all()[:SHOWN])
    return render(request, "inspector/share/detail.html", context, status=status)


@require_safe
def share_preview(request: HttpRequest, pk: UUID) -> HttpResponse:
    """The report as its readers will see it: the same file."""
    row = _share(request, pk)
    if row.is_draft:
        return report_answer(making.page_of(making.reviewed(row)[0]).encode())
    body = publishing.file_of(row, making.NAMES[0], is_view=False)
    if body is None:
        raise Http404("This share has no report.")
    return report_answer(body)


@require_POST
def share_review(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Note what is not to be hidden."""
    row = _draft(request, pk)
    kept = tuple(dict.fromkeys(text[:60] for text in request.POST.getlist("keep")[:2_000]))
    making.keep(row, tuple(text for text in kept if text.isprintable()))
    return redirect(row)


@require_http_methods(["GET", "HEAD", "POST"])
def share_publish(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Publish a draft; this one answer has the link, and who loads it anew comes to the page of the share."""
    row = _share(request, pk)
    if request.method != "POST" or row.published:
        return redirect(row)
    row = _draft(request, pk)
    token = publishing.publish(row)
    audit.note(request, "share published", row.pk)
    row.refresh_from_db()
    return _page(request, row, token, 200 if token else 409)


@require_POST
def share_revoke(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End a share at once; a draft is thrown away."""
    row = _share(request, pk)
    publishing.revoke(row)
    audit.note(request, "share revoked", row.pk)
    return redirect(row)


def _share(request: HttpRequest, pk: UUID) -> Share:
    shares = Share.objects.of(project_of(request)).select_related("session").filter(session__deleted=None)
    return get_object_or_404(shares, pk=pk)


def _draft(request: HttpRequest, pk: UUID) -> Share:
    row = _share(request, pk)
    if not row.is_draft:
        raise Http404("This share is not a draft.")
    return row


def _row(row: Share) -> dict[str, Any]:
    """A share as lists show it."""
    return {"row": row, "state": _state(row), "is_open": row.is_open(timezone.now())}


def _state(row: Share) -> str:
    if row.revoked is not None:
        return "revoked" if row.published else "discarded"
    if row.state != Share.State.PUBLISHED:
        return {Share.State.DRAFT: "to be reviewed", Share.State.FAILED: "failed"}.get(
            Share.State(row.state), "being created"
        )
    return "published" if row.is_open(timezone.now()) else "expired"
