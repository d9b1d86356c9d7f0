"""Saved views: filters, search and order of a page under a name."""

from __future__ import annotations

import uuid

from django.db import models

from inspector.models.projects import Owned


class SavedView(Owned):
    """The query string of a page, as that page writes it, under a name that all members of the project see."""

    class Page(models.TextChoices):
        """Which page it is of."""

        SESSIONS = "sessions"
        TRIGGERS = "triggers"

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    page = models.CharField(max_length=10, choices=Page.choices)
    name = models.CharField(max_length=60)
    query = models.TextField()  # begins with "?"
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["project", "page", "name"], name="one_saved_view_of_a_name")]

    def __str__(self) -> str:
        return f"{self.name} ({self.page})"
