"""The application's addresses, where a worker takes an import as soon as an answer waits for it."""

from __future__ import annotations

from django.urls import include, path

from inspector.ingest.importing import run_import
from inspector.models import Import
from inspector.pages.upload import views
from inspector.project.urls import *  # noqa: F403


def worked(jobs: list[Import]) -> list[Import]:
    """The imports when a worker has done them."""
    for job in jobs:
        run_import(str(job.pk))
        job.refresh_from_db()
    return jobs


urlpatterns = [
    path("recordings/", views.upload, {"wait": worked}),
    path("samples/<slug:name>/", views.open_sample, {"wait": worked}),
    path("", include("inspector.project.urls")),
]
