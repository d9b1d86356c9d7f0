"""The addresses of team mode: every other one, and those of accounts and the team."""

from django.urls import include, path

from inspector.project.urls import PAGES, handler400, handler403, handler404, handler500
from inspector.project.urls import urlpatterns as pages

urlpatterns = [
    *pages,
    path("", include(f"{PAGES}.account.urls")),
    path("team/", include(f"{PAGES}.team.urls")),
]

__all__ = ["handler400", "handler403", "handler404", "handler500", "urlpatterns"]
