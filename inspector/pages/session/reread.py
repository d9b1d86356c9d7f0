"""The offer to read a stored file again, where an earlier version read it and took over less than this one does."""

from __future__ import annotations

from django.urls import reverse

from inspector.ingest.importing import READING, report_of
from inspector.models import Import, Session

SUB_AGENTS = "links between this session and its sub-agents"
GAINS = {  # format: what reading 1 takes over that earlier ones did not
    "claude-code": SUB_AGENTS,
    "copilot-cli": SUB_AGENTS,
    "crush": SUB_AGENTS,
    "opencode": SUB_AGENTS,
    "hermes": "totals of prompt tokens for calls without a count of their own",
}


def offer(row: Session, newest: Import | None) -> dict[str, str]:
    """What is missing and where to post; empty for a session that this version has read or would read alike."""
    if newest is None or row.format not in GAINS:
        return {}
    if not newest.ended:
        return {"sentence": "The stored file is being read again.", "report": newest.get_absolute_url()}
    report = report_of(newest)
    if report is None or report.reading >= READING:
        return {}
    return {
        "sentence": (
            f"An earlier version of this program read the file of this session and took over no {GAINS[row.format]}. "
            "If the file holds any, they appear here once it is read again; title, tags and window stay."
        ),
        "url": reverse("import_again", args=[newest.pk]),
    }
