"""Saved views and presets: the query string of a page under a name."""

from __future__ import annotations

import uuid

from django.db import models

from inspector.models.projects import Owned


class SavedQuery(Owned):
    """A query string, as its page writes it, under a name that all members of the project see."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=60)
    query = models.TextField()  # begins with "?"
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        abstract = True
        ordering = ["name"]


class SavedView(SavedQuery):
    """Filters, search and order of a page."""

    class Page(models.TextChoices):
        """The list that a saved view shows."""

        SESSIONS = "sessions"
        TRIGGERS = "triggers"

    page = models.CharField(max_length=10, choices=Page.choices)

    class Meta(SavedQuery.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "page", "name"], name="one_saved_view_of_a_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.page})"


class Preset(SavedQuery):
    """Policy, profile, settings and window of a replay, as `inspector.replays.choice.Choice.query` writes them."""

    class Meta(SavedQuery.Meta):
        constraints = [models.UniqueConstraint(fields=["project", "name"], name="one_preset_of_a_name")]

    def __str__(self) -> str:
        return self.name
