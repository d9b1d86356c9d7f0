"""Every address of the application: each page has its own below."""

from django.urls import include, path

PAGES = "inspector.pages"

urlpatterns = [
    path("", include(f"{PAGES}.library.urls")),
    path("", include(f"{PAGES}.search.urls")),
    path("", include(f"{PAGES}.upload.urls")),
    path("imports/", include(f"{PAGES}.imports.urls")),
    path("s/<uuid:session_id>/", include(f"{PAGES}.session.urls")),
    path("", include(f"{PAGES}.running.urls")),
    path("", include(f"{PAGES}.connect.urls")),
    path("watching/", include(f"{PAGES}.watching.urls")),
    path("webhooks/", include(f"{PAGES}.webhooks.urls")),
    path("triggers/", include(f"{PAGES}.triggers.urls")),
    path("sweeps/", include(f"{PAGES}.sweep.urls")),
    path("shares/", include(f"{PAGES}.share.urls")),
    path("r/", include(f"{PAGES}.report.urls")),
    path("", include(f"{PAGES}.help.urls")),
    path("compare/", include(f"{PAGES}.compare.urls")),
    path("gallery/", include(f"{PAGES}.gallery.urls")),
    path("policies/", include(f"{PAGES}.policies.urls")),
    path("", include("inspector.api.urls")),
    path("", include(f"{PAGES}.health.urls")),
]

handler400 = f"{PAGES}.errors.views.bad_request"
handler403 = f"{PAGES}.errors.views.forbidden"
handler404 = f"{PAGES}.errors.views.not_found"
handler500 = f"{PAGES}.errors.views.server_error"
