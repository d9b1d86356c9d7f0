"""Tags: words that people put on sessions to find them again."""

from __future__ import annotations

from django.db import models

from inspector.models.projects import Owned
from inspector.models.sessions import Session


class Tag(Owned):
    """One word, kept in lower case; it is gone with the last session that carries it."""

    name = models.CharField(max_length=40)
    sessions = models.ManyToManyField(Session, related_name="tags")

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_tag_of_this_name")]

    def __str__(self) -> str:
        return self.name
