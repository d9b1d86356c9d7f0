"""The list of sessions, and what is done to them."""

from django.urls import path

from inspector.pages.library import actions, views

urlpatterns = [
    path("s/<uuid:pk>/rename", actions.rename, name="session_rename"),
    path("s/<uuid:pk>/delete", actions.delete, name="session_delete"),
    path("", views.home, name="home"),
    path("sessions/bulk", actions.bulk, name="sessions_bulk"),
    path("sessions/restore", actions.restore, name="sessions_restore"),
    path("sessions/views", actions.save_view, name="sessions_view_save"),
    path("sessions/views/restore", actions.restore_view, name="sessions_view_restore"),
    path("sessions/views/<uuid:pk>/delete", actions.delete_view, name="sessions_view_delete"),
    path("sessions/views/<uuid:pk>/rename", actions.rename_view, name="sessions_view_rename"),
    path("imports/dismiss", actions.dismiss, name="imports_dismiss"),
    path("imports/undismiss", actions.undismiss, name="imports_undismiss"),
]
