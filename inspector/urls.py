"""Every address of the application, grouped by what it is about."""

from django.urls import include, path

from inspector.views import downloads, health, home, imports, library, search, uploads

session_urls = [
    path("rename", library.rename, name="session_rename"),
    path("delete", library.delete, name="session_delete"),
    path("search", search.session_search, name="session_search"),
]
import_urls = [
    path("", imports.detail, name="import_detail"),
    path("status", imports.status, name="import_status"),
    path("cancel", imports.cancel, name="import_cancel"),
    path("again", imports.again, name="import_again"),
    path("choose", imports.choose, name="import_choose"),
]
urlpatterns = [
    path("", home.home, name="home"),
    path("search", search.search, name="search"),
    path("sessions/bulk", library.bulk, name="sessions_bulk"),
    path("sessions/restore", library.restore, name="sessions_restore"),
    path("recordings/", uploads.upload, name="upload"),
    path("recordings/<uuid:pk>/raw", downloads.raw, name="recording_raw"),
    path("samples/<slug:name>/", uploads.open_sample, name="open_sample"),
    path("imports/dismiss", library.dismiss, name="imports_dismiss"),
    path("imports/undismiss", library.undismiss, name="imports_undismiss"),
    path("imports/<uuid:pk>/", include(import_urls)),
    path("s/<uuid:pk>/", include(session_urls)),
    path("s/<uuid:session_id>/", include("inspector.session_urls")),
    path("gallery/", include("inspector.gallery_urls")),
    path("healthz", health.health, name="health"),
]

handler400 = "inspector.views.errors.bad_request"
handler403 = "inspector.views.errors.forbidden"
handler404 = "inspector.views.errors.not_found"
handler500 = "inspector.views.errors.server_error"
