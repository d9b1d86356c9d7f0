"""What the rule of its agent says of a session: computed when the session is stored or assessed, and read by pages."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import NamedTuple

import msgspec

from guard_core.errors import GuardError
from guard_core.packing import decode, encode
from guard_core.rules import Agent, Explanation, Stretch, agent_of, explain
from guard_core.sessions import Provenance, Sourced
from guard_core.sessions import Session as CoreSession
from inspector.models import RuleExplanation, Session
from inspector.models.prepared import Select, Slot
from inspector.models.projects import Project
from inspector.models.rules import stated_settings
from inspector.models.sessions import ENGINE
from inspector.storage import loading
from inspector.storage.byte_cache import ByteCache
from inspector.storage.compression import compressed, decompressed

CACHE_BYTES = 5_000_000  # of explanations in a process; one of 2,500 compactions takes about 2 MB
ENTRY_BYTES = 800  # of a compaction or a check as Python holds it


def settings_of(head: CoreSession, project: Project | int) -> dict[str, str]:
    """The settings of the rule of a session's agent that people typed in a project; those that the rule can read."""
    agent = agent_of(head)
    if agent is None:
        return {}
    stated = stated_settings(project, agent.label)
    return {name: value for name, value in stated.items() if is_readable(agent, name, value)}


def is_readable(agent: Agent, name: str, value: str) -> bool:
    """Is a stored setting one of the rule: it may have been typed for an earlier version of this program."""
    try:
        agent.check_typed({name: value})
        agent.ruled(Stretch(0, 0, "", "", None), {name: value})
    except GuardError:
        return False
    return True


def store(row: Session, head: CoreSession, explanation: Explanation) -> None:
    """Keep the explanation of a stored session under its window and the settings in use."""
    values = {
        "revision": row.revision,
        "basis": _basis(row, settings_of(head, row.project_id)),
        "body": compressed(encode(explanation)),
        "evidence": encode(explanation.evidence),
    }
    RuleExplanation.objects.in_session(row).bulk_create(
        [RuleExplanation(session=row, **values)], update_conflicts=True, unique_fields=["session"], update_fields=values
    )


class ExplanationInUse(NamedTuple):
    """The explanation of a session under the window and the settings in use, and the digest of all that it rests on
    beside the session (`basis_of`)."""

    explanation: Explanation
    basis: str


def load(row: Session) -> Explanation:
    """The explanation under the window and the settings in use. Raises loading.Outdated."""
    return in_use(row).explanation


def in_use(row: Session) -> ExplanationInUse:
    """The same with its basis; computed where none is stored of this session as it is now. Raises loading.Outdated."""
    head = loading.load_head(row)
    settings = settings_of(head, row.project_id)
    basis = _basis(row, settings)
    key = (str(row.pk), row.revision, basis)
    window = window_of(loading.window_in_use(row))
    explanation = _cache.get(
        key,
        lambda: _stored(row, basis) or explain(head, loading.load_ledger(row), window=window, typed=settings),
    )
    return ExplanationInUse(explanation, basis)


def basis_of(row: Session) -> str:
    """A digest of all that the explanation of a stored session rests on beside that session: engine, a person's window
    and settings. Raises loading.Outdated."""
    return _basis(row, settings_of(loading.load_head(row), row.project_id))


def window_of(sourced: Sourced) -> Sourced | None:
    """The window that a person stated, which a rule takes before any other."""
    return sourced if sourced.source is Provenance.USER else None


def _stored(row: Session, basis: str) -> Explanation | None:
    stored = _BODY.first(session=row.pk, revision=row.revision, basis=basis)
    try:
        return None if stored is None else decode(decompressed(stored[0]), Explanation, "explanation")
    except GuardError:
        return None  # of a form that this version does not know


def _basis(row: Session, settings: Mapping[str, str]) -> str:
    window = window_of(loading.window_in_use(row))
    stated = None if window is None else window.value
    return hashlib.sha256(msgspec.json.encode([ENGINE, stated, dict(settings)], order="deterministic")).hexdigest()


_BODY = Select(
    RuleExplanation.objects.in_session(Slot(RuleExplanation, "session"))
    .filter(revision=Slot(RuleExplanation, "revision"), basis=Slot(RuleExplanation, "basis"))
    .values_list("body")
)
_cache: ByteCache[Explanation] = ByteCache(
    CACHE_BYTES, lambda known: ENTRY_BYTES * (1 + len(known.compactions) + len(known.missed)), revision=1
)
