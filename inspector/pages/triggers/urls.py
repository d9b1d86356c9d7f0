"""The thresholds of all sessions, below /triggers/."""

from django.urls import path

from inspector.pages.shared import saved_views
from inspector.pages.triggers import downloads, views
from inspector.pages.triggers.analysis import TriggersFilter

urlpatterns = [
    path("", views.triggers, name="triggers"),
    path("share", downloads.triggers_share, name="triggers_share"),
    *saved_views.addresses("views", saved_views.TRIGGERS, lambda given: TriggersFilter.parse(given).query()),
    path("rows.csv", downloads.rows_csv, name="triggers_rows"),
    path("compactions.csv", downloads.compactions_csv, name="triggers_compactions"),
    path("triggers.json", downloads.as_json, name="triggers_json"),
]
