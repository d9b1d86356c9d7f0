"""The list of sessions, and what is done to them."""

from django.urls import path

from inspector.pages.library import actions, views
from inspector.pages.shared import saved_views
from inspector.pages.shared.listing import Listing

urlpatterns = [
    path("s/<uuid:pk>/rename", actions.rename, name="session_rename"),
    path("s/<uuid:pk>/delete", actions.delete, name="session_delete"),
    path("", views.home, name="home"),
    path("sessions/bulk", actions.bulk, name="sessions_bulk"),
    path("sessions/restore", actions.restore, name="sessions_restore"),
    *saved_views.addresses("sessions/views", saved_views.SESSIONS, lambda given: Listing.parse(given).address()),
    path("imports/dismiss", actions.dismiss, name="imports_dismiss"),
    path("imports/undismiss", actions.undismiss, name="imports_undismiss"),
]
