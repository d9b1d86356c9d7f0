"""The rules of the agents that wrote recordings: settings that people typed in, and what the rules say of a session."""

from __future__ import annotations

from django.db import models

from inspector.models.projects import Owned, Project, SessionPart
from inspector.models.sessions import Session


class RuleSetting(Owned):
    """A setting of an agent's rule that its recordings do not hold, as a person typed it: for all its sessions."""

    agent = models.CharField(max_length=60)  # the label of guard_core.rules.Agent
    name = models.CharField(max_length=60)
    value = models.CharField(max_length=60)  # as typed; what the rule cannot read is not stored

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "agent", "name"], name="one_value_of_a_setting")]

    def __str__(self) -> str:
        return f"{self.agent} {self.name}: {self.value}"


class RuleExplanation(SessionPart):
    """A session beside the rule of its agent, computed once. `basis` is a digest of all that it rests on beside the
    stored session of this revision: engine, a person's window and settings. Of another one it is computed anew."""

    session = models.OneToOneField(Session, models.CASCADE, primary_key=True, related_name="explanation")
    revision = models.IntegerField()  # of the session
    basis = models.CharField(max_length=64)
    body = models.BinaryField()  # guard_core.rules.Explanation, msgpack, zstd
    evidence = models.BinaryField(
        null=True
    )  # of it what is joined over sessions, msgpack; None: stored before there was


def stated_settings(project: Project | int, agent: str) -> dict[str, str]:
    """The settings of an agent's rule that people typed in a project, by name."""
    return dict(RuleSetting.objects.of(project).filter(agent=agent).order_by("name").values_list("name", "value"))
