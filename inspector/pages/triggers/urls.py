"""The thresholds of all sessions, below /triggers/."""

from django.urls import path

from inspector.pages.triggers import downloads, views

urlpatterns = [
    path("", views.triggers, name="triggers"),
    path("share", downloads.triggers_share, name="triggers_share"),
    path("views", views.save_view, name="triggers_view_save"),
    path("views/restore", views.restore_view, name="triggers_view_restore"),
    path("views/<uuid:pk>/delete", views.delete_view, name="triggers_view_delete"),
    path("views/<uuid:pk>/rename", views.rename_view, name="triggers_view_rename"),
    path("rows.csv", downloads.rows_csv, name="triggers_rows"),
    path("compactions.csv", downloads.compactions_csv, name="triggers_compactions"),
    path("triggers.json", downloads.as_json, name="triggers_json"),
]
