"""What every form of a share asks (title, what else to hide, lifetime, password), and the form of a share of tables."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from guard_core.errors import GuardError
from guard_core.redaction import own_patterns
from guard_core.report import TableReport
from guard_core.report.document import Remark
from guard_core.report.tables import LEVELS
from inspector.accounts import audit
from inspector.pages.shared.project import project_of
from inspector.replays.choice import sentence
from inspector.sharing import making, publishing

LIFETIMES = {"1h": timedelta(hours=1), "1d": timedelta(days=1), "7d": timedelta(days=7)}
LIFETIME_WORDS = {"1h": "1 hour", "1d": "1 day", "7d": "7 days", "days": "days:"}
TABLE_LEVELS = {
    "numbers": "Numbers only: no titles of sessions",
    "names": "Numbers and names: also the titles of the sessions",
}
MOST_DAYS = 365
LONGEST_TITLE, LONGEST_TEXT, MOST_REMARKS, LONGEST_PASSWORD = 200, 10_000, 100, 200  # characters; lines


class Common(NamedTuple):
    """What was typed in the fields that all forms have."""

    title: str
    hide: tuple[str, ...]
    lifetime: timedelta
    password: str


def plain(given: Mapping[str, Any]) -> dict[str, str]:
    """What was typed, as text that can be stored."""
    return {name: str(value).replace("\x00", "").encode("utf-8", "replace").decode() for name, value in given.items()}


def common(typed: Mapping[str, str], errors: dict[str, str]) -> Common:
    """The common fields of a form; an error for each that is wrong."""
    hide = tuple(typed.get("hide", "")[:LONGEST_TEXT].splitlines())
    try:
        own_patterns(hide)
    except GuardError as error:
        errors["hide"] = sentence(error)
    password = typed.get("password", "")
    if len(password) > LONGEST_PASSWORD:
        errors["password"] = f"A password has at most {LONGEST_PASSWORD} characters."
    title = " ".join(typed.get("title", "").split())[:LONGEST_TITLE]
    return Common(title, hide, _lifetime(typed, errors), password)


def _lifetime(typed: Mapping[str, str], errors: dict[str, str]) -> timedelta:
    wanted = typed.get("lifetime", "7d")
    if wanted in LIFETIMES:
        return LIFETIMES[wanted]
    days = typed.get("days", "").strip()
    if wanted == "days" and days.isascii() and days.isdigit() and 1 <= int(days[:9]) <= MOST_DAYS:
        return timedelta(days=int(days))
    errors["lifetime"] = f"Choose 1 hour, 1 day, 7 days, or a number of days from 1 to {MOST_DAYS}."
    return LIFETIMES["7d"]


def remark_lines(text: str, errors: dict[str, str]) -> list[str]:
    """The lines that are not blank; none, with an error, where there are too many."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if len(text) > LONGEST_TEXT or len(lines) > MOST_REMARKS:
        errors["remarks"] = f"At most {MOST_REMARKS} remarks of {LONGEST_TEXT:,} characters in all."
        return []
    return lines


def share_tables(
    request: HttpRequest, report_of: Callable[[str], TableReport], heading: str, back: str
) -> HttpResponse:
    """The form of a share of tables; a POST makes it, as a draft to be reviewed.

    `report_of`: the report at a level. `heading` says what is shared, `back` is the address of its page.
    """
    errors: dict[str, str] = {}
    typed: dict[str, str] = {"level": "names", "lifetime": "7d"}
    if request.method == "POST":
        typed = plain(request.POST.dict())
        fields = common(typed, errors)
        if typed.get("level") not in LEVELS:
            errors["level"] = f"Choose one of: {', '.join(LEVELS)}."
        remarks = tuple(Remark(-1, line) for line in remark_lines(typed.get("remarks", ""), errors))
        if not errors:
            wanted = making.ShareRequest(title=fields.title, remarks=remarks, hide=fields.hide)
            password = publishing.hashed_password(fields.password)
            project = project_of(request)
            share = making.keep_tables(project, report_of(typed["level"]), wanted, fields.lifetime, password)
            audit.note(request, "share made", f"{share.pk}: {typed['level']}")
            return redirect(share)
    context = {
        "heading": heading,
        "back": back,
        "typed": typed,
        "errors": errors,
        "levels": TABLE_LEVELS.items(),
        "lifetimes": LIFETIME_WORDS.items(),
    }
    return render(request, "inspector/share/tables.html", context, status=422 if errors else 200)
