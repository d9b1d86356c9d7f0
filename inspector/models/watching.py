"""Folders and files of this machine that a server in local mode watches."""

from __future__ import annotations

from django.db import models

from inspector.models.projects import Owned


class WatchedPlace(Owned):
    """A folder or file whose sessions are sent to this server while their agents write them."""

    path = models.CharField(max_length=1000)  # absolute, without links
    created = models.DateTimeField(auto_now_add=True)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "path"], name="one_watch_of_a_place")]

    def __str__(self) -> str:
        return self.path
