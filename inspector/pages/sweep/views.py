"""Sweeps: the list, the form, one sweep with its progress and its answer, cancel and delete."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from django.db.models import Count
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from guard_core.policies import DEFAULT_POLICY, GROUPS, POLICIES, PolicyKind, Setting
from guard_core.sweep import MEASURES
from inspector.models import Project, Session, Sweep, Tag
from inspector.pages.shared.htmx import render_part
from inspector.pages.shared.listing import DEFAULT_SORT, Listing, about, choices
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.project import project_of
from inspector.pages.sweep import presenter, presets, runs
from inspector.pages.sweep.question import FIELDS, PLACES, fixed_names, parse_question
from inspector.replays.choice import plain

MOST_SESSIONS = 500  # of one sweep: each is a job
SHOWN_SWEEPS = 100  # in the list
IN_ADDRESS = ("policy", "window", "figure", "settings")  # fields that are judged before the form is sent
FILTERS = (("tag", "Tag"), ("agent", "Agent"), ("model", "Model"), ("format", "Format"))


@require_GET
def sweeps(request: HttpRequest) -> HttpResponse:
    """All sweeps, the newest first."""
    rows = runs.sweeps_of(project_of(request)).order_by("-created")[:SHOWN_SWEEPS]
    listed = [{"row": row, "progress": runs.progress_of(row)} for row in rows]
    undo = request.GET.get("undo", "")
    deleted = runs.deleted_by(project_of(request), undo).first()
    return render(request, "inspector/sweep/list.html", {"sweeps": listed, "undo": undo, "deleted": deleted})


@require_http_methods(["GET", "HEAD", "POST"])
def sweep_new(request: HttpRequest) -> HttpResponse:
    """The form; a POST starts the sweep. `?session=` takes one session, else what the filters leave."""
    given = request.POST if request.method == "POST" else request.GET
    project = project_of(request)
    sessions, chosen, error = _sessions(project, given)
    if request.method == "POST":
        question, errors = parse_question(given.dict(), len(sessions), sum(row.calls for row in sessions))
        errors = {"sessions": error, **errors} if error else errors
        if question is not None and not errors:
            return redirect(runs.start(project, question, sessions))
    else:
        _, wrong = parse_question(given.dict(), len(sessions))  # of an address only what it holds is judged
        errors = {name: words for name, words in wrong.items() if name in IN_ADDRESS and given.get(name)}
        errors |= {"sessions": error} if error else {}
    # a form whose policy or profile was changed still sends the axes of the one before
    is_as_before = given.get("policy") == given.get("policy_before") and _has_effect(given)
    keeps_axes = request.method == "POST" or ("axis1" in given and is_as_before)
    fields, filters = _form(given, errors, keeps_axes), _filters(project, given)
    hidden = [("session", chosen["session"])] if "session" in chosen else filters["kept"]
    hidden = [*hidden, ("figure", fields["figure"])]
    context = {**fields, **filters, "chosen": chosen, "saved": presets.menu(request, fields["typed"], hidden)}
    return render_part(
        request,
        "sweep-form",
        "inspector/sweep/_form.html",
        "inspector/sweep/new.html",
        context,
        422 if errors and request.method == "POST" else 200,
    )


def _sessions(project: Project, given: QueryDict) -> tuple[list[Session], dict[str, Any], str]:
    """The sessions with model calls that are asked for (none where they are too many), what to say of them, and what is
    wrong."""
    usable = Session.objects.of(project).filter(deleted=None, calls__gt=0)
    if text := given.get("session", ""):
        try:
            row = usable.select_related("recording").filter(pk=UUID(text)).first()
        except ValueError:
            row = None
        if row is None:
            return [], {}, "There is no such session, or it has no model call."
        return [row], {"session": str(row.pk), "title": row.title or "untitled", "url": row.get_absolute_url()}, ""
    listing = Listing.parse(given)
    keys = list(listing.sessions(project).order_by().values_list("pk", flat=True).distinct()[: 100 * MOST_SESSIONS])
    matching = usable.filter(pk__in=keys)
    sums = matching.aggregate(sessions=Count("pk"), recordings=Count("recording_id", distinct=True))
    words = {"count": counted(sums["sessions"], "session"), "recordings": counted(sums["recordings"], "recording")}
    if not sums["sessions"]:
        nothing = "There is no session with a model call yet: import a recording, or open a sample, on the first page."
        return [], words, "No session with a model call matches." if usable.exists() else nothing
    if sums["sessions"] > MOST_SESSIONS:  # not loaded: thousands of rows take longer than the whole form
        return [], words, f"{sums['sessions']:,} sessions match; at most {MOST_SESSIONS} are swept together."
    return list(matching.select_related("recording").order_by("created", "ordinal", "pk")), words, ""


def _filters(project: Project, given: QueryDict) -> dict[str, Any]:
    """The menus of the session filter, and the other filters of the library that the address has."""
    listing = Listing.parse(given)
    values = {
        "tag": list(Tag.objects.of(project).values_list("name", flat=True)),
        **{name: choices(project, name) for name, _ in FILTERS[1:]},
    }
    shown = {"q", "session", *(name for name, _ in FILTERS), *FIELDS, "csrfmiddlewaretoken"}
    others = [
        (name, item) for name, item in QueryDict(listing.address(sort=DEFAULT_SORT)[1:]).lists() if name not in shown
    ]
    menus = [
        {"name": name, "label": label, "value": getattr(listing, name), "options": values[name]}
        for name, label in FILTERS
    ]
    more = [(name, value) for name, items in others for value in items]
    chosen = [("q", listing.q), *((menu["name"], menu["value"]) for menu in menus)]
    return {
        "q": listing.q,
        "menus": menus,
        "others": more,
        "kept": [*((name, value) for name, value in chosen if value), *more],
    }


def _has_effect(given: QueryDict) -> bool:
    """Has every axis of a form an effect in its profile."""
    kind = POLICIES.get(given.get("policy", ""), POLICIES[DEFAULT_POLICY])
    unused = {item.name for item in kind.unused(given.get("profile", ""))}
    axes = {given.get("axis1", ""), given.get("axis2", "")}
    return "profile" in axes or not axes & unused


def _form(given: QueryDict, errors: dict[str, str], keeps_axes: bool) -> dict[str, Any]:
    kind = POLICIES.get(given.get("policy", ""), POLICIES[DEFAULT_POLICY])
    typed = {name: str(given.get(name, ""))[:200] for name in FIELDS}
    if not keeps_axes:
        typed |= {"axis1": "", "values1": "", "axis2": "", "values2": ""}
        fixed = fixed_names(typed["settings"])
        free = [item for item in kind.settings if item not in kind.unused(typed["profile"])]
        axes = [item for item in free if item.sweep and not fixed & {item.name, item.key}]
        for number, item in enumerate(axes[:2], 1):
            typed |= {f"axis{number}": item.name, f"values{number}": ", ".join(plain(value) for value in item.sweep)}
        if not axes and not typed["window"]:
            typed |= {"axis1": "window", "values1": "100k, 200k"}
    options = _options(kind, typed, {typed["axis1"], typed["axis2"]})
    return {
        "errors": errors,
        "typed": typed | {"policy": kind.name},
        "kind": kind,
        "policies": [(group, [(item.name, item.title) for item in kinds]) for group, kinds in GROUPS.items()],
        "profiles": kind.profile_names,
        "figures": list(MEASURES.values()),
        "figure": typed["figure"] or "compactions",
        "axes": [
            {
                "number": number,
                "name": typed[f"axis{number}"],
                "values": typed[f"values{number}"],
                "options": options,
            }
            | {"name_error": errors.get(f"axis{number}", ""), "error": errors.get(f"values{number}", "")}
            for number in ("1", "2")
        ],
        "settings": [
            {
                "name": item.name,
                "label": item.label,
                "allowed": item.allowed,
                "default": plain(item.default),
                "help": item.help,
                "note": _note(kind, item, typed["profile"]),
            }
            for item in kind.settings
        ],
    }


def _options(kind: PolicyKind, typed: Mapping[str, str], chosen: set[str]) -> list[tuple[str, str]]:
    """What an axis may vary: what has an effect in the profile, and what is chosen already, which is then refused."""
    unused = () if "profile" in chosen else kind.unused(typed["profile"])
    settings = [
        (item.name, f"{item.label} (needs {kind.setting(item.needs).label.lower()})" if item.needs else item.label)
        for item in kind.settings
        if item not in unused or {item.name, item.key} & chosen
    ]
    places = {name: label for name, label in PLACES.items() if name != "profile" or kind.profiles or name in chosen}
    return [*settings, *places.items()]


def _note(kind: PolicyKind, item: Setting, profile: str) -> str:
    """What keeps a setting from having an effect."""
    if item in kind.unused(profile):
        return f"no effect in profile {profile or kind.default_profile}"
    return f"no effect while {kind.setting(item.needs).name} is off" if item.needs else ""


@require_GET
def sweep(request: HttpRequest, pk: UUID) -> HttpResponse:
    """One sweep: how far it is, or its answer; `?figure=` says what the heat map shows."""
    row = get_object_or_404(runs.sweeps_of(project_of(request)), pk=pk)
    progress = runs.progress_of(row)
    answer = runs.ended(row, progress)
    context: dict[str, Any] = {"sweep": row, "progress": progress, "answer": answer}
    if answer is not None:
        context |= _answer(request, row, answer)
    elif not progress.under_way:
        context["failed"] = list(runs.slices_of(row).exclude(message="")[:20])
    return render_part(request, "sweep", "inspector/sweep/_sweep.html", "inspector/sweep/index.html", context)


def _answer(request: HttpRequest, row: Sweep, answer: runs.EndedSweep) -> dict[str, Any]:
    known = {item.name: item for item in presenter.measures_of(answer)}
    # The figure that the address names, where the sweep has it; else overflows, or what was made small.
    first = "overflows" if any(cell.overflow_steps for cell in answer.result.cells) else answer.question.by
    measure = known.get(request.GET.get("figure", ""), known.get(first, MEASURES["compactions"]))
    heat = presenter.heat(answer, measure)
    address = reverse("sweep", args=[row.pk])
    keys = [key for key, _ in answer.sessions[: presenter.SHOWN_SESSIONS]]
    rows = Session.objects.of(project_of(request)).filter(pk__in=keys, deleted=None)
    abouts = {str(session.pk): about(session) for session in rows}  # what distinguishes those that have one title
    return {
        "recommendation": presenter.recommendation(answer),
        "measure": measure,
        "switch": [
            {"label": item.title, "url": f"{address}?{urlencode({'figure': name})}", "current": item is measure}
            for name, item in known.items()
        ],
        "heat": heat,
        "heat_rows": presenter.rows(heat),
        "overflowing": any(any(line) for line in heat.over),
        "trade_offs": presenter.trade_offs(answer),
        "sessions": presenter.sessions(answer, abouts),
    }


@require_POST
def sweep_cancel(request: HttpRequest, pk: UUID) -> HttpResponse:
    """End a sweep that is under way."""
    row = get_object_or_404(runs.sweeps_of(project_of(request)), pk=pk)
    runs.cancel(row)
    return redirect(row)


@require_POST
def sweep_delete(request: HttpRequest, pk: UUID) -> HttpResponse:
    """Take a sweep off the list, for a day with an undo."""
    key = runs.delete(get_object_or_404(runs.sweeps_of(project_of(request)), pk=pk))
    return redirect(f"{reverse('sweeps')}?undo={key}")


@require_POST
def sweep_restore(request: HttpRequest) -> HttpResponse:
    """Bring back a sweep that was deleted."""
    runs.restore(project_of(request), request.POST.get("undo", ""))
    return redirect("sweeps")
