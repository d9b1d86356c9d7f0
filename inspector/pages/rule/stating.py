"""The settings of an agent's rule as a person states them: for all sessions of that agent in a project."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from guard_core.errors import GuardError
from guard_core.rules import Agent, Stretch
from inspector.jobs.assessing import ASSESSMENTS
from inspector.models import RuleSetting, Session
from inspector.models.rules import stated_settings
from inspector.replays.choice import sentence
from inspector.storage.assessment import assess

AT_ONCE = 5_000  # calls of a session that is assessed while its page waits; a longer one follows in the job


def complaints(agent: Agent, values: Mapping[str, str]) -> dict[str, str]:
    """Why each of these settings cannot be one of the rule, by name; those that can are left out."""
    errors = {}
    for name, value in values.items():
        try:
            agent.check_typed({name: value})
            agent.ruled(Stretch(0, 0, "", "", None), {name: value})
        except GuardError as error:
            errors[name] = sentence(error)
    return errors


def state(row: Session, agent: Agent, values: Mapping[str, str]) -> dict[str, str]:
    """Let these be the settings of the rule in the project of a session, in the place of all before; those before."""
    settings = RuleSetting.objects.of(row.project_id)
    before = stated_settings(row.project_id, agent.label)
    with transaction.atomic():
        settings.filter(agent=agent.label).delete()
        settings.bulk_create(RuleSetting(agent=agent.label, name=name, value=value) for name, value in values.items())
        sessions = Session.objects.of(row.project_id)
        (sessions.filter(format=agent.format) if agent.format else sessions).update(assessed_by="")
    if row.calls <= AT_ONCE:
        assess(row)  # the others follow in a job
    ASSESSMENTS.prepare(str(row.pk))
    return before
