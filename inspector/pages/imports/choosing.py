"""The sessions of one file, to choose from."""

from __future__ import annotations

from typing import Any

from inspector.ingest.submitting import ImportReport
from inspector.models import Session
from inspector.pages.shared.numbers import DASH
from inspector.pages.shared.parts import in_order
from inspector.pages.shared.peaks import peak_source

NEW, LONGER = "new", "longer"


def row(session: Session, report: ImportReport) -> dict[str, Any]:
    """One session as the page and its script show it; texts are shown, numbers sort. The peak is the
    list's: the largest request in prompt tokens, recorded or modelled."""
    started, key = session.started_at, str(session.pk)
    standing = LONGER if key in report.extended else "" if key in report.known else NEW
    return {
        "id": key,
        "url": session.get_absolute_url(),
        "title": in_order(session.title),
        "standing": standing if report.known else "",
        "model": session.model or DASH,
        "started": f"{started:%Y-%m-%d %H:%M}" if started else DASH,
        "messages": session.events,
        "calls": session.calls,
        "peak": session.peak_tokens,
        "peak_source": peak_source(session),
        "compactions": session.compactions,
    }


def known_words(report: ImportReport) -> str:
    """What an upload of a known file changed: empty where none of its sessions was stored."""
    if not report.known:
        return ""
    known, extended = len(report.known), len(report.extended)
    here = f"{known:,} of them {'was' if known == 1 else 'were'} imported before"
    if extended == known:
        return f"{here} and {'has' if known == 1 else 'have'} new messages"
    if not extended:
        return f"{here} and {'is' if known == 1 else 'are'} unchanged"
    same = known - extended
    return f"{here}: {extended:,} {'has' if extended == 1 else 'have'} new messages, {same:,} unchanged"
