"""Addresses of the stress gallery, below /gallery/."""

from django.urls import path

from inspector.views import gallery

urlpatterns = [
    path("", gallery.gallery, name="gallery"),
    path("run", gallery.gallery_run, name="gallery_run"),
    path("cancel", gallery.gallery_cancel, name="gallery_cancel"),
    path("open", gallery.gallery_open, name="gallery_open"),
    path("new", gallery.gallery_new, name="gallery_new"),
    path("step", gallery.gallery_step, name="gallery_step"),
]
