"""Makes the report of a share, in a job: built from the stored session, searched for secrets, and kept as a draft."""

from __future__ import annotations

from datetime import timedelta

import msgspec
from django.db import transaction
from django.db.models import QuerySet

from guard_core.errors import GuardError
from guard_core.estimation.attribution import attribute
from guard_core.findings import Facts
from guard_core.redaction import RedactionEntry, Redactor, learn_session, own_patterns, redacted_report, redacted_tables
from guard_core.report import (
    Report,
    ReportOptions,
    ReportPart,
    TableReport,
    badge,
    build,
    extract,
    markdown,
    page,
    sealed,
    sheet,
    tables_badge,
    tables_markdown,
    tables_page,
    tables_sheet,
)
from guard_core.report.building import judged_window
from guard_core.report.document import Remark, encode
from inspector.jobs.leased import LEASE, LeasedJob
from inspector.models import Project, Session, Share, ShareRecord
from inspector.storage import explanations, loading, storing
from inspector.storage.compression import compressed, decompressed
from inspector.storage.estimates import load_result

PRIORITY = 5  # a person waits for it: before verdicts and sweeps
NAMES = ("report.html", "report.json", "report.csv", "report.md", "badge.svg")


class ShareRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a share is to hold; `options` of the report of a session, None for tables that a page has computed;
    `part` is the one compaction or decision of the session that is shared, None for all of it. `hide` are texts that
    are hidden besides the known kinds; `kept` keys of values, and kinds, that are not hidden."""

    options: ReportOptions | None = None
    part: ReportPart | None = None
    title: str = ""
    remarks: tuple[Remark, ...] = ()
    hide: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


class ReportDraft(msgspec.Struct, frozen=True):
    """The report as it was made, of a session or of tables, and all values that the session's texts gave away."""

    report: Report | None = None
    known: tuple[tuple[str, str], ...] = ()
    tables: TableReport | None = None


class Reports(LeasedJob[Share]):
    """The jobs that make reports."""

    kind = "make_report"
    model = Share
    silence = LEASE
    fresh = {}
    begun = {}
    priority = PRIORITY
    priority_again = PRIORITY

    def give_up(self, row: Share, mine: QuerySet[Share]) -> bool:
        message = f"The worker died {row.attempts} times while making the report."
        return bool(mine.update(state=Share.State.FAILED, message=message))


REPORTS = Reports()


def ask_for(project: Project, session: Session, request: ShareRequest, lifetime: timedelta, password: str) -> Share:
    """A new share and its job, in one transaction. `password` is hashed, "" for none."""
    with transaction.atomic():
        share = Share.objects.of(project).create(
            session=session,
            request=msgspec.json.encode(request),
            title=request.title or session.title[:200],
            lifetime=int(lifetime.total_seconds()),
            password=password,
        )
        about = f"{request.part.kind} {request.part.number + 1}, " if request.part else ""
        note(share, "requested", f"{about}level {request.options.level if request.options else ''}")
        REPORTS.enqueue(share)
    return share


def keep_tables(
    project: Project, report: TableReport, request: ShareRequest, lifetime: timedelta, password: str
) -> Share:
    """A new share of tables that a page has computed: a draft, to be reviewed. `password` as above."""
    report = msgspec.structs.replace(report, title=request.title, remarks=request.remarks)
    with transaction.atomic():
        share = Share.objects.of(project).create(
            request=msgspec.json.encode(request),
            title=request.title or report.about[:200],
            lifetime=int(lifetime.total_seconds()),
            password=password,
            state=Share.State.DRAFT,
            draft=_packed(ReportDraft(tables=sealed(report))),
        )
        note(share, "requested", f"{report.kind}, level {report.level}")
    return share


def make_report(key: str) -> None:
    """Make the report of a share and keep it as a draft. Does nothing where another worker has it."""
    lease = REPORTS.take(key)
    if not lease:
        return
    share, mine = Share.unscoped.select_related("session").get(pk=key), REPORTS.held(key, lease)
    try:
        assert share.session is not None, "a share of tables needs no job"
        draft = _draft(share.session, request_of(share))
        mine.filter(revoked=None).update(state=Share.State.DRAFT, draft=_packed(draft), message="")
    except (GuardError, MemoryError) as error:
        message = str(error)[:2_000] or "There was not enough memory to make the report."
        mine.update(state=Share.State.FAILED, message=message)
    except Exception:
        mine.update(state=Share.State.FAILED, message="An internal error stopped the report; see the server log.")
        raise


def _draft(row: Session, request: ShareRequest) -> ReportDraft:
    storing.ensure_current(row)
    session, ledger, options = loading.load_session(row), loading.load_ledger(row), request.options or ReportOptions()
    facts = Facts(
        session,
        ledger,
        attribute(ledger),
        judged_window(session, options),
        loading.request_words_of(row),
        explanations.settings_of(session, row.project_id),
    )
    measured = load_result(row)
    errors = measured.forecast if measured else None
    redactor = Redactor(own_patterns(request.hide))
    learn_session(redactor, session)
    for remark in request.remarks:
        redactor.learn(remark.text)
    if request.part is not None:
        tables = extract(session, options, request.part, errors, facts)
        tables = msgspec.structs.replace(tables, title=request.title, remarks=request.remarks)
        return ReportDraft(None, redactor.known, sealed(tables))
    report = build(session, options, errors, facts)
    report = msgspec.structs.replace(report, title=request.title, remarks=request.remarks)
    return ReportDraft(sealed(report), redactor.known)


def request_of(share: Share) -> ShareRequest:
    """What a share was asked to hold."""
    return msgspec.json.decode(bytes(share.request), type=ShareRequest)


def reviewed(share: Share) -> tuple[Report | TableReport, list[RedactionEntry]]:
    """The report of a draft as it would be published, and what was found in it."""
    assert share.draft is not None
    request = request_of(share)
    draft = msgspec.json.decode(decompressed(bytes(share.draft)), type=ReportDraft)
    redactor = Redactor(own_patterns(request.hide), request.kept)
    redactor.remember(draft.known)
    if draft.tables is not None:
        return redacted_tables(draft.tables, redactor), redactor.entries
    assert draft.report is not None
    return redacted_report(draft.report, redactor), redactor.entries


def keep(share: Share, kept: tuple[str, ...]) -> bool:
    """Note which values and kinds are not hidden; False where the share is not a draft any more."""
    request = msgspec.structs.replace(request_of(share), kept=kept)
    drafts = Share.objects.row(share).filter(state=Share.State.DRAFT)
    with transaction.atomic():
        if not drafts.update(request=msgspec.json.encode(request)):
            return False
        note(share, "kept", f"{len(kept):,} values or kinds are not hidden")
    return True


def page_of(report: Report | TableReport) -> str:
    """A report as HTML."""
    return tables_page(report) if isinstance(report, TableReport) else page(report)


def rendered(report: Report | TableReport) -> dict[str, bytes]:
    """The report in every form, compressed, by name."""
    others = (
        (tables_sheet(report), tables_markdown(report), tables_badge(report))
        if isinstance(report, TableReport)
        else (sheet(report), markdown(report), badge(report))
    )
    texts = (page_of(report), encode(report).decode(), *others)
    return {name: compressed(text.encode()) for name, text in zip(NAMES, texts, strict=True)}


def note(share: Share, what: str, detail: str = "") -> None:
    """Remember what was done with a share."""
    ShareRecord.objects.of(share.project_id).create(share=share, what=what, detail=detail[:200])


def _packed(draft: ReportDraft) -> bytes:
    return compressed(msgspec.json.encode(draft))
