"""The stress gallery, a form for scenarios of one's own, and one step of the simulator explained."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from guard_core.errors import GuardError, UnknownName
from guard_core.ledger import Ledger
from guard_core.policies import DEFAULT_POLICY, GROUPS, POLICIES
from guard_core.simulator.flow import play
from guard_core.simulator.scenario import Scenario
from guard_core.simulator.scenarios import SCENARIOS, get_scenario
from inspector.figures.flow import drawing
from inspector.ingest.submitting import only_session_of
from inspector.ingest.waiting import settled
from inspector.models import Import, Session
from inspector.models.gallery import GalleryRun
from inspector.pages.errors.views import plain
from inspector.pages.gallery import presenter, preview
from inspector.pages.gallery import runs as service
from inspector.pages.gallery import step as telling
from inspector.pages.gallery.form import LIMITS, START, ScenarioForm, from_scenario
from inspector.pages.gallery.table import (
    PolicyChoice,
    ResultRow,
    all_profiles,
    guards,
    guards_by_group,
    make_policy,
    play_trace,
    profiles_of,
)
from inspector.pages.session.frame import number, other_step_note, step_of
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.numbers import step_number, turn_number
from inspector.pages.shared.project import project_of

DEFAULT = (PolicyChoice(DEFAULT_POLICY, POLICIES[DEFAULT_POLICY].default_profile),)
ABOUT = ("Baseline", "ContextGuard")  # groups of policies that are offered first
FIRST_STEP = "TimingGap_CalibratedHeuristicPreventsOverflow"  # where the count of the step before is too old
FIRST_STEP_AT = 1


@require_GET
def gallery(request: HttpRequest) -> HttpResponse:
    """The table of a choice of policies and profiles, the progress of its run, or the offer to play it."""
    chosen, error = _chosen(request.GET.getlist("policy"), request.GET.getlist("profile"))
    run = service.latest_run(project_of(request), chosen)
    done = (
        run
        if run and run.state == GalleryRun.State.DONE
        else service.latest_run(project_of(request), chosen, GalleryRun.State.DONE)
    )
    filtered = presenter.parse_filter(request.GET.dict())
    context = {
        "error": error,
        "chooser": _chooser(chosen),
        "run": run,
        "under_way": run is not None and not run.ended,
        "here": reverse("gallery") + filtered.query(chosen),
        "policies": list(dict.fromkeys(guard.policy for guard in chosen)),
        "profiles": list(dict.fromkeys(guard.profile for guard in chosen if guard.profile)),
        "choice": ", ".join(guard.name for guard in chosen),
        "count": len(SCENARIOS),
        "has_table": done is not None,
        **(_table(service.rows_of(done), filtered, chosen) if done else {}),
    }
    page, part = "inspector/gallery/index.html", "inspector/gallery/_gallery.html"
    return render_part(request, "gallery", part, page, context, 422 if error else 200)


@require_POST
def gallery_run(request: HttpRequest) -> HttpResponse:
    """Play the scenarios under a choice, unless that result is there already."""
    policies, profiles = request.POST.getlist("policy"), request.POST.getlist("profile")
    if not policies:
        return plain(request, 422, "No policy is chosen", "Choose at least one policy to run the scenarios under.")
    chosen, error = _chosen(policies, profiles)
    if error:
        return plain(request, 422, "This cannot be run", error)
    service.start_run(project_of(request), chosen)
    return redirect(reverse("gallery") + presenter.Filter().query(chosen))


@require_POST
def gallery_cancel(request: HttpRequest) -> HttpResponse:
    """Stop the run of a choice."""
    chosen, error = _chosen(request.POST.getlist("policy"), request.POST.getlist("profile"))
    run = None if error else service.latest_run(project_of(request), chosen, *GalleryRun.UNDER_WAY)
    if run is not None:
        service.cancel_run(run)
    return redirect(reverse("gallery") + presenter.Filter().query(chosen))


@require_POST
def gallery_open(request: HttpRequest) -> HttpResponse:
    """A scenario as a session, under the policy of its row."""
    name, _, guard = request.POST.get("scenario", "").partition(" ")
    try:
        job = service.open_scenario(project_of(request), get_scenario(name))
    except UnknownName as error:
        return plain(request, 404, "No such scenario", f"{_sentence(error)}.")
    return redirect(_address(settled([job])[0], guard))


@require_http_methods(["GET", "HEAD", "POST"])
def gallery_new(request: HttpRequest) -> HttpResponse:
    """The form for a scenario; a POST makes the session, a GET shows what it will be."""
    if "csrfmiddlewaretoken" in request.GET:  # sent along by a preview without JavaScript: not for addresses
        fields = [
            (key, value) for key in request.GET for value in request.GET.getlist(key) if key != "csrfmiddlewaretoken"
        ]
        return redirect(f"{reverse('gallery_new')}?{urlencode(fields)}")
    form, error = _form(request)
    if request.method == "POST" and form.is_valid():
        (job,) = settled([service.open_simulation(project_of(request), form.simulation, form.name)])
        return redirect(_address(job, form.chosen_guard.name))
    context = {
        "form": form,
        "error": error,
        "limits": LIMITS,
        "preview": preview.preview(form) if form.is_valid() else None,
        "scenarios": [
            (group, [name for name, item in SCENARIOS.items() if presenter.group_of(item) == key])
            for key, group in presenter.GROUPS.items()
            if key
        ],
        "start": request.GET.get("from", ""),
    }
    status = 422 if (error or form.errors) and not request.headers.get("HX-Request") else 200
    page, part = "inspector/gallery/new.html", "inspector/gallery/_preview.html"
    return render_part(request, "preview", part, page, context, status)


def _form(request: HttpRequest) -> tuple[ScenarioForm, str]:
    if request.method == "POST":
        return ScenarioForm(request.POST), ""
    if "window" in request.GET:
        return ScenarioForm(request.GET), ""
    name = request.GET.get("from", "")
    try:
        return ScenarioForm(from_scenario(get_scenario(name)) if name else START), ""
    except UnknownName as error:
        return ScenarioForm(START), f"{_sentence(error)}."


@require_GET
def gallery_step(request: HttpRequest) -> HttpResponse:
    """One step of one scenario, stage by stage."""
    name = request.GET.get("scenario", FIRST_STEP)
    scenario, error = SCENARIOS.get(name), ""
    if scenario is None:
        scenario, error = SCENARIOS[FIRST_STEP], f"There is no scenario {name[:60]!r}; this is the timing gap."
    guard, wrong = _one_guard(request.GET.get("guard", ""))
    context = {"error": error or wrong, **_step_context(request, scenario, guard)}
    status = 422 if context["error"] else 200
    return render(request, "inspector/gallery/step.html", context, status=status)


def _step_context(request: HttpRequest, scenario: Scenario, guard: PolicyChoice) -> dict[str, Any]:
    part = number(request, "part", 1, 1, len(scenario.simulations))
    simulation = scenario.simulations[part - 1]
    flow = play(simulation)
    ledger = Ledger.of(flow.session)
    trace = play_trace(simulation, guard, ledger)
    fired = [record.step for record in trace.compactions]
    first = FIRST_STEP_AT if scenario.name == FIRST_STEP else fired[0] if fired else 0
    at = step_of(request, "at", len(trace), first)
    step = telling.SimulatedStep(simulation, flow, ledger, trace, make_policy(guard).explain(trace, at), at)
    stages = telling.stages(step)
    more = {"scenario": scenario.name, "guard": guard.name, **({"part": part} if part > 1 else {})}
    return {
        "scenario": scenario,
        "about": presenter.about(scenario),
        "names": list(SCENARIOS),
        "guards": guards_by_group(),
        "guard": guard.name,
        "part": part,
        "parts": range(1, len(scenario.simulations) + 1),
        "at": step_number(at),
        "count": len(trace),
        "note": other_step_note(request, at, len(trace)),
        "label": telling.label_words(flow.labels[at]),
        "turn": turn_number(flow.turns[at]),
        "turns": len(simulation.turns),
        "stages": stages,
        "drawing": drawing(stages, telling.LANES),
        "bars": telling.bars(step),
        "links": _step_links(more, at, len(trace) - 1, fired),
        "fired": len(fired),
    }


def _step_links(more: dict[str, Any], at: int, last: int, fired: list[int]) -> list[dict[str, str]]:
    def address(step: int) -> str:
        return "?" + urlencode({**more, "at": step_number(step)})

    before, after = [step for step in fired if step < at], [step for step in fired if step > at]
    places = (
        ("‹ step", "previous step", at - 1 if at else None, "k ArrowLeft"),
        ("step ›", "next step", at + 1 if at < last else None, "j ArrowRight"),
        ("‹ ▼", "previous compaction", before[-1] if before else None, "["),
        ("▼ ›", "next compaction", after[0] if after else None, "]"),
    )
    return [
        {"sign": sign, "title": title, "key": key, "url": "" if step is None else address(step)}
        for sign, title, step, key in places
    ]


def _chosen(policies: list[str], profiles: list[str]) -> tuple[tuple[PolicyChoice, ...], str]:
    """The guards of an address; the default and a sentence where it names what does not exist."""
    if not policies and not profiles:
        return DEFAULT, ""
    try:
        return guards(policies or [DEFAULT_POLICY], profiles), ""
    except GuardError as error:
        return DEFAULT, f"{_sentence(error)}."


def _one_guard(name: str) -> tuple[PolicyChoice, str]:
    """The policy and profile that an address names as "policy/profile", and what is wrong with them."""
    if not name:
        return DEFAULT[0], ""
    policy, _, profile = name.partition("/")
    chosen, error = _chosen([policy], [profile] if profile else [])
    return chosen[0], error


def _chooser(chosen: tuple[PolicyChoice, ...]) -> dict[str, Any]:
    """The policies and profiles to choose from; those that the gallery is not about are behind a fold."""
    policies, profiles = {guard.policy for guard in chosen}, {guard.profile for guard in chosen}
    groups = {group: [(kind.name, kind.name in policies) for kind in kinds] for group, kinds in GROUPS.items()}
    more_groups = {group: kinds for group, kinds in groups.items() if group not in ABOUT}
    owners = {name: [policy for policy in POLICIES if name in profiles_of(policy)] for name in all_profiles()}
    more_profiles = [(name, name in profiles, ", ".join(of)) for name, of in owners.items() if DEFAULT_POLICY not in of]
    return {
        "groups": {group: groups[group] for group in ABOUT},
        "profiles": [(name, name in profiles) for name in profiles_of(DEFAULT_POLICY)],
        "more_groups": more_groups,
        "more_profiles": more_profiles,
        "is_open": any(on for kinds in more_groups.values() for _, on in kinds)
        or any(on for _, on, _ in more_profiles),
    }


def _table(rows: list[ResultRow], filtered: presenter.Filter, chosen: tuple[PolicyChoice, ...]) -> dict[str, Any]:
    fitting = presenter.ordered([row for row in rows if presenter.fits(row, filtered)], filtered.sort)
    pages = max(1, -(-len(fitting) // presenter.PAGE))
    page = min(filtered.page, pages)
    shown = fitting[(page - 1) * presenter.PAGE : page * presenter.PAGE]
    return {
        "filter": filtered,
        "totals": presenter.totals(rows),
        "switches": presenter.switches(filtered, chosen, rows),
        "headings": presenter.headings(filtered, chosen),
        "rows": [presenter.table_row(row, many=len(chosen) > 1) for row in shown],
        "shown": f"{len(fitting):,} of {len(rows):,}",
        "everything": reverse("gallery") + presenter.Filter().query(chosen),
        "pages": [(n, filtered.query(chosen, page=n), n == page) for n in range(1, pages + 1)] if pages > 1 else [],
    }


def _address(job: Import, guard: str) -> str:
    session = only_session_of(job)
    if session is None and job.state == Import.State.DONE:
        # A scenario of independent parts has a session for each.
        sessions = Session.objects.of(job.project_id).filter(recording=job.recording_id, deleted=None)
        session = sessions.order_by("ordinal").first()
    if session is None:
        return job.get_absolute_url()
    query = presenter.sessions_query(guard)
    return session.get_absolute_url() + (f"?{query}" if query else "")


def _sentence(error: Exception) -> str:
    text = str(error)
    return text[:1].upper() + text[1:]
