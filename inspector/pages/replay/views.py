"""What a page shows while its replay runs in a process of its own; then that process makes the page."""

from __future__ import annotations

from http.cookies import SimpleCookie
from typing import NamedTuple
from uuid import UUID

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from inspector.models import Session
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.project import project_of
from inspector.replays.choice import NAMES, Choice, form, parse_choice
from inspector.replays.messages import AVOID, POLICIES, PROFILES, REPLAY, Task
from inspector.replays.own_policy import own_policy
from inspector.replays.processes import AT_ONCE, ENDED_EARLY, REPLAYS, LongReplay, ProcessState

RETRY_SECONDS = "1"
PROGRAMS = "/api/"  # addresses whose answers are always JSON
PAGES = {
    REPLAY: "session_overview",
    POLICIES: "session_policies",
    PROFILES: "session_policies",
    AVOID: "session_avoid",
}
WHOLE_PAGE = "replay"  # the element of a page that shows nothing but the progress


class LongWork(NamedTuple):
    """What takes long, in words."""

    heading: str
    subject: str
    failed: str
    cancelled: str
    again: str


ONE_REPLAY = LongWork("Replaying", "This replay", "Not replayed", "Replay cancelled", "Replay again")
COMPARISON = LongWork(
    "Comparing policies", "Comparing all policies", "Not compared", "Comparison cancelled", "Compare again"
)
SEARCH = LongWork("Searching settings", "Trying other settings", "Not searched", "Search cancelled", "Search again")
WORKS = {REPLAY: ONE_REPLAY, AVOID: SEARCH}  # all others compare policies


def progress_page(request: HttpRequest, replay: LongReplay) -> HttpResponse:
    """The page from the replay's own process where it is done, else how far it is."""
    if replay.state is ProcessState.READY and _target(request) == WHOLE_PAGE:
        return _load_anew()
    if replay.state is ProcessState.READY and (page := replay.page(_meta(request))) is not None:
        response = HttpResponse(page.body, status=page.status, headers=dict(page.headers))
        for cookie in page.cookies:
            response.cookies.update(SimpleCookie(cookie))
        return response
    if replay.state in (ProcessState.READY, ProcessState.ENDED):
        REPLAYS.forget(replay)  # the next request replays again
        return _show(request, replay, ended=replay.words or ENDED_EARLY)
    return _show(request, replay)


def loaded_anew(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """The response; where a whole page would come into the element that shows nothing but the progress, the order to
    load it anew. A tab in the background asks so rarely that its replay may be stored when it does."""
    if response.status_code == 200 and _target(request) == WHOLE_PAGE and "HX-Reswap" not in response:
        return _load_anew()
    return response


def _load_anew() -> HttpResponse:
    return HttpResponse(headers={"HX-Refresh": "true"})


def _show(request: HttpRequest, replay: LongReplay, ended: str = "") -> HttpResponse:
    if request.path.endswith(".json") or request.path.startswith(PROGRAMS):
        return _as_json(replay, ended)
    target = _target(request)
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=replay.task.session)
    context = {
        "session": row,
        "settings": replay.task.choice.words() if replay.task.choice.changed else "",
        "replay": replay,
        "here": request.get_full_path(),
        "ended": ended,
        "words": _words(replay),
        "work": _work(replay.task),
        "target": target or WHOLE_PAGE,
    }
    template = "inspector/replay/_progress.html" if target else "inspector/replay/progress.html"
    response = render(request, template, context)
    if target:
        response["HX-Reswap"] = "outerHTML"
    return response


def _work(task: Task) -> LongWork:
    return WORKS.get(task.work, COMPARISON)


def _target(request: HttpRequest) -> str:
    """The id of the element that htmx asks for; "" for a whole page."""
    htmx = getattr(request, "htmx", None)
    return (htmx.target or "") if htmx and not htmx.history_restore_request else ""


def _as_json(replay: LongReplay, ended: str) -> JsonResponse:
    """For a program: 503 where the replay ended early, else 202 with how far it is and when to ask again."""
    if ended:
        return JsonResponse({"state": ProcessState.ENDED, "reason": ended, "error": ended}, status=503)
    answer = JsonResponse({"state": replay.state, "done": replay.done, "total": replay.total}, status=202)
    answer["Retry-After"] = RETRY_SECONDS
    return answer


def _words(replay: LongReplay) -> str:
    """How far a replay is: it waits for others, has begun, or has replayed so many steps."""
    if replay.state is ProcessState.WAITING:
        return f"waiting: {AT_ONCE} other replays or comparisons are running"
    if not replay.done:
        return "starting …"
    return f"{replay.done:,} of {counted(replay.total, 'step')} replayed"


def _meta(request: HttpRequest) -> dict[str, str]:
    """The request as a WSGI environment has it: texts whose characters are bytes."""
    texts = {name: value for name, value in request.META.items() if isinstance(value, str)}
    for name in ("PATH_INFO", "QUERY_STRING"):
        texts[name] = texts.get(name, "").encode("utf-8", "surrogateescape").decode("latin-1")
    return {**texts, "wsgi.url_scheme": request.scheme or "http"}


@require_POST
def cancel_replay(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """End a replay under way; then a page that says so and starts nothing."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    cancelled = REPLAYS.cancel(request.POST.get("replay", ""))
    if cancelled is None or cancelled.task.session != str(row.pk):  # it has ended by itself
        return redirect(row)
    if cancelled.state is ProcessState.READY:
        return redirect(_page_of(cancelled.task))
    return redirect(_address("replay_cancelled", cancelled.task))


@require_safe
def cancelled_replay(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """What to do after a cancel: run it again, or replay under other settings. Nothing is replayed for this page."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    typed = {name: request.GET.get(name, "") for name in NAMES}
    choice, errors = parse_choice(typed, own_policy(row))
    task = _task(row, choice, request)
    context = {
        "session": row,
        "settings": choice.words() if choice.changed else "",
        "work": _work(task),
        "again": _address("replay_again", task),
        "quick": row.get_absolute_url() + Choice(policy="none").query(),
        "form": form(choice, typed, errors, {"window": f"{row.effective_window:,}"}),
    }
    return render(request, "inspector/replay/cancelled.html", context)


@require_safe
def run_again(request: HttpRequest, session_id: UUID) -> HttpResponse:
    """On to the page under these settings; a replay that was cancelled is not reported a second time."""
    row = get_object_or_404(Session.objects.of(project_of(request)), pk=session_id, deleted=None)
    choice, _ = parse_choice({name: request.GET.get(name, "") for name in NAMES}, own_policy(row))
    task = _task(row, choice, request)
    REPLAYS.forget_ended(task)
    return redirect(_page_of(task))


def _task(row: Session, choice: Choice, request: HttpRequest) -> Task:
    """What an address asks to be computed."""
    work = request.GET.get("work", REPLAY)
    return Task(str(row.pk), choice, work if work in PAGES else REPLAY)


def _page_of(task: Task) -> str:
    """The address of the page that shows what a task computes."""
    query = task.choice.query(profiles="all" if task.work == PROFILES else "")
    return reverse(PAGES[task.work], args=[task.session]) + query


def _address(name: str, task: Task) -> str:
    """The address of a page about the task itself."""
    return reverse(name, args=[task.session]) + task.choice.query(work="" if task.work == REPLAY else task.work)
