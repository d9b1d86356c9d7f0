"""The listed policies and a page for each, all of it from what they publish."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from guard_core.errors import UnknownName
from guard_core.policies import GROUPS, POLICIES, policy_kind
from inspector.figures.flow import drawing
from inspector.pages.policies import presenter as present
from inspector.pages.policies import stages as flow
from inspector.pages.policies.examples import examples_of


@require_safe
def policies(request: HttpRequest) -> HttpResponse:
    """All policies by group."""
    groups = [(group, [present.row(kind) for kind in kinds]) for group, kinds in GROUPS.items()]
    context = {"groups": groups, "count": len(POLICIES)}
    return render(request, "inspector/policies/index.html", context)


@require_safe
def policy(request: HttpRequest, name: str) -> HttpResponse:
    """One policy; `?profile=` for the defaults of another version, `?sample=` for the session in the drawing."""
    try:
        kind = policy_kind(name)
    except UnknownName as error:
        raise Http404(str(error)) from error
    wanted = request.GET.get("profile", "")
    profile = wanted if wanted in kind.profile_names else kind.default_profile
    examples = examples_of(kind.name, profile)
    shown = flow.shown_example(examples, request.GET.get("sample", ""))
    stages = flow.stages(kind, profile, shown)
    context: dict[str, Any] = {
        "kind": kind,
        "facts": present.facts(kind, profile),
        "profiles": present.profiles(kind, profile, request.path),
        "settings": present.settings(kind),
        "problems": kind.known_problems,
        "results": kind.results,
        "examples": present.examples(examples, shown, request.path, profile if wanted else ""),
        "about": flow.about(shown),
        "stages": stages,
        "drawing": drawing(stages, flow.LANES) if stages else None,
    }
    return render(request, "inspector/policies/policy.html", context)
