"""Context windows that people stated for models."""

from __future__ import annotations

from django.db import models

from guard_core.sessions import Provenance
from inspector.models.projects import Owned, Project

# What a person's window for the model takes the place of. A window from the file, or set for one session, stays.
LOOKED_UP = (Provenance.MODEL_TABLE.value, Provenance.PROMPTS.value, Provenance.ASSUMED.value)
SIMULATED = "simulation"  # the format of sessions whose window is part of their scenario


class ModelWindow(Owned):
    """The context window of a model as a person stated it: of all its sessions without a window of their own."""

    model = models.CharField(max_length=200)
    window = models.BigIntegerField()  # tokens

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "model"], name="one_window_of_a_model")]

    def __str__(self) -> str:
        return f"{self.model}: {self.window}"


def stated_window(project: Project | int, model: str, format_name: str, source: str) -> int | None:
    """The window in tokens that a person stated in a project for a session's model; None where none is, or where the
    session has its own. `source`: of the session's window."""
    if not model or format_name == SIMULATED or source not in LOOKED_UP:
        return None
    return ModelWindow.objects.of(project).filter(model=model).values_list("window", flat=True).first()
