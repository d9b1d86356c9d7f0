"""Uploading recordings, and downloading them again."""

from django.urls import path

from inspector.pages.upload import downloads, views

urlpatterns = [
    path("recordings/", views.upload, name="upload"),
    path("recordings/<uuid:pk>/raw", downloads.raw, name="recording_raw"),
    path("samples/<slug:name>/", views.open_sample, name="open_sample"),
]
