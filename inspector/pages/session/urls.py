"""The pages of one session, below /s/<uuid>/."""

from django.urls import include, path

from inspector.pages.session.views import session_strip

PAGES = "inspector.pages"

urlpatterns = [
    path("strip", session_strip, name="session_strip"),
    path("", include(f"{PAGES}.steps.urls")),
    path("", include(f"{PAGES}.compaction.urls")),
    path("", include(f"{PAGES}.estimator.urls")),
    path("", include(f"{PAGES}.rule.urls")),
    path("", include(f"{PAGES}.context.urls")),
    path("", include(f"{PAGES}.comparison.urls")),
    path("", include(f"{PAGES}.facts.urls")),
    path("", include(f"{PAGES}.avoid.urls")),
    path("", include(f"{PAGES}.growth.urls")),
    path("", include(f"{PAGES}.window.urls")),
    path("", include(f"{PAGES}.replay.urls")),
    path("", include(f"{PAGES}.share.session_urls")),
    path("", include(f"{PAGES}.export.urls")),
    path("", include(f"{PAGES}.comments.urls")),
    path("", include(f"{PAGES}.overview.urls")),
]
