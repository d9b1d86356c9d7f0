"""Tags: words that people put on sessions to find them again."""

from __future__ import annotations

from django.db import models

from inspector.models.sessions import Session


class Tag(models.Model):
    """One word, kept in lower case; it is gone with the last session that carries it."""

    name = models.CharField(max_length=40, unique=True)
    sessions = models.ManyToManyField(Session, related_name="tags")

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name
