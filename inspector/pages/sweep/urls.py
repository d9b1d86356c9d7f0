"""Sweeps, below /sweeps/."""

from django.urls import path

from inspector.pages.sweep import downloads, views

urlpatterns = [
    path("", views.sweeps, name="sweeps"),
    path("restore", views.sweep_restore, name="sweep_restore"),
    path("new", views.sweep_new, name="sweep_new"),
    path("<uuid:pk>/", views.sweep, name="sweep"),
    path("<uuid:pk>/share", downloads.sweep_share, name="sweep_share"),
    path("<uuid:pk>/cancel", views.sweep_cancel, name="sweep_cancel"),
    path("<uuid:pk>/delete", views.sweep_delete, name="sweep_delete"),
    path("<uuid:pk>/sweep.csv", downloads.sweep_csv, name="sweep_csv"),
    path("<uuid:pk>/sweep.json", downloads.sweep_json, name="sweep_json"),
]
