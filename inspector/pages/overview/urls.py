"""The overview of a session."""

from django.urls import path

from inspector.pages.overview import presets, views

urlpatterns = [
    path("", views.session_overview, name="session_overview"),
    path("figure.json", views.session_figure, name="session_figure"),
    path("presets", presets.save_preset, name=presets.SAVE),
    path("presets/restore", presets.restore_preset, name=presets.RESTORE),
    path("presets/<uuid:pk>/delete", presets.delete_preset, name=presets.DELETE),
    path("presets/<uuid:pk>/rename", presets.rename_preset, name=presets.RENAME),
]
