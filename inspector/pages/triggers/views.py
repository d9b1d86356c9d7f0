"""At which threshold each agent really compacts: one row per agent, version, model and window."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from inspector.models import Session
from inspector.pages.session.frame import number
from inspector.pages.shared import parameters, saved_views
from inspector.pages.shared.htmx import render_part, wants_part
from inspector.pages.shared.project import project_of
from inspector.pages.triggers import presenter
from inspector.pages.triggers.analysis import TriggersAnalysis, TriggersFilter

MOST_ROWS = 100_000  # ours: a number in an address that is larger means the last page
PART, PAGE = "inspector/triggers/_triggers.html", "inspector/triggers/index.html"


@require_safe
def triggers(request: HttpRequest) -> HttpResponse:
    """The rows of all sessions, or of those that the filters leave; `?from=` is the page's first row. Every state is in
    the address."""
    project, wanted = project_of(request), TriggersFilter.parse(request.GET)
    if not wanted.filtered and not Session.objects.of(project).filter(deleted=None).exists():
        return render(request, "inspector/triggers/empty.html")
    context = presenter.context(
        project, TriggersAnalysis.of(project, wanted), number(request, "from", 1, 1, MOST_ROWS) - 1
    )
    context["unread"] = parameters.unread(request.GET, days=("since", "until"))
    context["saved"] = saved_views.menu(request, saved_views.TRIGGERS, wanted.query())
    context["is_part"] = wants_part(request, "triggers")
    return render_part(request, "triggers", PART, PAGE, context)
