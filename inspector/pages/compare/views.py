"""Recordings and replays side by side; without any, the form that picks them."""

from __future__ import annotations

import csv
from itertools import zip_longest
from typing import Any
from urllib.parse import urlencode

import msgspec
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_GET, require_http_methods

from guard_core.policies import DEFAULT_POLICY, GROUPS
from inspector.figures.legend import legend_names
from inspector.figures.plain import plain_figure
from inspector.models import Project, Session
from inspector.pages.compare.figure import SideLine, comparison_figure, comparison_picture
from inspector.pages.compare.report import report_of, side_sentences
from inspector.pages.compare.sides import (
    MOST_SIDES,
    AddressedSide,
    ComparedSide,
    computed,
    named_session,
    parting,
    wanted,
)
from inspector.pages.session.frame import step_of
from inspector.pages.shared.listing import about
from inspector.pages.shared.numbers import DASH, percent, points, signed, step_number, tokens
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.project import project_of
from inspector.pages.shared.share_fields import share_tables

OFFERED = 100  # sessions in the form: the newest, beside those that an address names


@require_GET
def compare(request: HttpRequest) -> HttpResponse:
    """`?side=SESSION` (a recording) or `SESSION?policy=…` (a replay), two to four of them; `at=` is the step that is
    shown, `format=csv` or `json` a download."""
    project = project_of(request)
    if picked := _picked(request.GET):
        return redirect(f"{reverse('compare')}?{urlencode([('side', key) for key in picked])}")
    chosen, errors = wanted(project, request.GET.getlist("side"))
    if len(chosen) < 2:
        return _picker(request, project, chosen, errors)
    sides = computed(chosen)
    if (kind := request.GET.get("format", "")) in ("csv", "json"):
        return _download(sides, kind)
    return render(request, "inspector/compare/index.html", _context(request, sides, errors))


@require_http_methods(["GET", "HEAD", "POST"])
def compare_share(request: HttpRequest) -> HttpResponse:
    """Share the comparison of an address: `?side=` as above."""
    chosen, errors = wanted(project_of(request), request.GET.getlist("side"))
    if errors or len(chosen) < 2:
        raise Http404("There is no such comparison.")
    sides = computed(chosen)
    back = f"{reverse('compare')}?{urlencode([('side', side.wanted.key) for side in sides])}"
    return share_tables(request, lambda level: report_of(sides, level), "this comparison", back)


def _picked(query: QueryDict) -> list[str]:
    """The sides that the form names, as addresses name them."""
    keys = []
    for number in range(1, MOST_SIDES + 1):
        if session := query.get(f"s{number}", ""):
            policy = query.get(f"p{number}", "")
            keys.append(session[:40] + (f"?{urlencode({'policy': policy[:60]})}" if policy else ""))
    return keys


def _picker(request: HttpRequest, project: Project, chosen: list[AddressedSide], errors: list[str]) -> HttpResponse:
    named = [(str(item.row.pk), item.choice.kind.name if item.is_replay else "") for item in chosen]
    named = named or [(request.GET.get("session", ""), "")]
    if len(named) < 2:
        session, policy = named[0]  # most often two sides are of one session, recorded and replayed
        named.append((session, DEFAULT_POLICY if session and not policy else ""))
    sides = [
        {"number": number, "session": session, "policy": policy}
        for number, (session, policy) in zip_longest(range(1, MOST_SIDES + 1), named, fillvalue=("", ""))
    ]
    # The menus offer what the address names, however old it is, then the newest.
    names = sorted({session for session, _ in named})
    first = [row for name in names if (row := named_session(project, name)) is not None]
    newest = Session.objects.of(project).filter(deleted=None).order_by("-created", "ordinal")[:OFFERED]
    rows = first + [row for row in newest if row not in first]
    sessions = [{"id": str(row.pk), "title": in_order(row.title), "about": about(row)} for row in rows]
    context = {
        "errors": errors or (["Choose at least two."] if chosen else []),
        "sides": sides,
        "sessions": sessions,
        "groups": [
            {"label": label, "kinds": [{"name": kind.name, "title": kind.title} for kind in kinds]}
            for label, kinds in GROUPS.items()
        ],
    }
    return render(request, "inspector/compare/new.html", context)


def _context(request: HttpRequest, sides: list[ComparedSide], errors: list[str]) -> dict[str, Any]:
    first, count = sides[0], max(side.steps for side in sides)
    parts = [parting(first, side) for side in sides[1:]]
    address = f"{reverse('compare')}?{urlencode([('side', side.wanted.key) for side in sides])}"
    here = step_of(request, "at", max(1, count), next((step for step in parts if step is not None), 0))
    lines = [SideLine(side.label, side.case.tokens, side.fired) for side in sides]
    drawn = comparison_figure(lines, parts[0])
    partings = []
    for side, at in zip(sides[1:], parts, strict=True):
        where = "send the same requests" if at is None else f"diverge at step {step_number(at):,}"
        partings.append(f"A and {side.letter} {where}")
    return {
        "errors": errors,
        "steps": count,
        "sides": [
            {"name": side.name, "url": side.url, "is_replay": side.is_replay, "about": about(side.wanted.row)}
            for side in sides
        ],
        "several": len({side.wanted.row.pk for side in sides}) > 1,
        "rows": _rows(sides),
        "letters": [side.letter for side in sides],
        "parts": [
            {"side": side.letter, "step": "" if at is None else f"{step_number(at):,}", "url": _at(address, at)}
            for side, at in zip(sides[1:], parts, strict=True)
        ],
        "modelled": any(side.is_replay for side in sides),
        "windows": side_sentences(sides),
        "figure": {
            "id": "comparison",
            "rows": 3,
            "picture": comparison_picture(lines, parts[0]),
            "data": plain_figure(drawn),
            "legend": legend_names(drawn),
            "caption": f"Prompt tokens over steps. {'; '.join(partings)}.",
            "label": "Prompt tokens of each side over steps.",
            "step_url": address,
        },
        "here": {
            "step": step_number(here),
            "count": f"{count:,}",
            "rows": [_at_step(side, here) for side in sides],
            "earlier": _at(address, here - 1) if here else "",
            "later": _at(address, here + 1) if here + 1 < count else "",
        },
        "hidden": [side.wanted.key for side in sides],
        "share": f"{reverse('compare_share')}?{address.partition('?')[2]}",
        "csv": f"{address}&format=csv",
        "json": f"{address}&format=json",
    }


def _at(address: str, step: int | None) -> str:
    return "" if step is None else f"{address}&at={step_number(step)}#step"


def _rows(sides: list[ComparedSide]) -> list[dict[str, Any]]:
    """One row for each figure, with the difference of every later side to the first."""
    columns = [side.figures() for side in sides]
    rows = [
        {
            "name": name,
            "first": tokens(columns[0][name]),
            "others": [
                {
                    "letter": side.letter,
                    "value": tokens(column[name]),
                    "difference": signed(column[name] - columns[0][name]),
                }
                for side, column in zip(sides[1:], columns[1:], strict=True)
            ],
        }
        for name in columns[0]
    ]
    first, *later = sides
    fills = [
        {"letter": side.letter, "value": percent(side.fill, 1, 1), "difference": points(first.fill, side.fill)}
        for side in later
    ]
    return [*rows, {"name": "peak fill", "first": percent(first.fill, 1, 1), "others": fills}]


def _at_step(side: ComparedSide, step: int) -> dict[str, Any]:
    if step >= side.steps:
        what = "has ended" if side.steps else "has no model call"
        return {"letter": side.letter, "tokens": DASH, "fill": DASH, "what": what, "url": ""}
    size, fired = int(side.case.tokens[step]), [item for item in side.case.fired if item.step == step]
    what = f"compacted: {tokens(fired[0].before)} → {tokens(fired[0].after)}" if fired else ""
    return {
        "letter": side.letter,
        "tokens": tokens(size),
        "fill": percent(size, int(side.case.windows[step]), 1),
        "what": what,
        "source": "modelled" if side.case.modelled[step] else "provider",
        "url": side.step_url(step),
    }


def _head(side: ComparedSide) -> str:
    """The head of a column of counts."""
    doubt = side.analysis.facts.counted_in
    return f"prompt tokens {side.letter}{f' ({doubt})' if doubt else ''}"


def _download(sides: list[ComparedSide], kind: str) -> HttpResponse:
    """Every step of every side; in JSON steps count from 0."""
    if kind == "json":
        parts = [parting(sides[0], side) for side in sides[1:]]
        report = {
            "numbering": "steps count from 0; parts_from_first is the first step that differs from side A",
            "sides": [
                {
                    "side": side.letter,
                    "session": str(side.wanted.row.pk),
                    "settings": side.wanted.choice.pairs() if side.is_replay else None,
                    "figures": side.figures(),
                    "counted_in": side.analysis.facts.counted_in or "tokens",
                    "windows": [msgspec.structs.asdict(item) for item in side.case.call_windows],
                    "parts_from_first": at,
                    "compaction_steps": side.fired.tolist(),
                    "prompt_tokens": side.case.tokens.tolist(),
                    "modelled": side.case.modelled.tolist(),
                }
                for side, at in zip(sides, [None, *parts], strict=True)
            ],
        }
        return JsonResponse(report)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="comparison.csv"'
    writer = csv.writer(response)
    writer.writerow(["step", *map(_head, sides)])
    columns = [side.case.tokens.tolist() for side in sides]
    for step in range(max(map(len, columns))):
        writer.writerow([step_number(step), *(column[step] if step < len(column) else "" for column in columns)])
    return response
