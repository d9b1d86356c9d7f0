"""The project that a request is about."""

from __future__ import annotations

from django.http import HttpRequest

from inspector.models import Project


def project_of(request: HttpRequest) -> Project:
    """The project whose rows alone a page shows and changes, as project.middleware.current_project found it."""
    project: Project = request.project  # type: ignore[attr-defined]  # Django's class does not know it
    return project
