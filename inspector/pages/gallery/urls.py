"""The stress gallery, below /gallery/."""

from django.urls import path

from inspector.pages.gallery import views

urlpatterns = [
    path("", views.gallery, name="gallery"),
    path("run", views.gallery_run, name="gallery_run"),
    path("cancel", views.gallery_cancel, name="gallery_cancel"),
    path("open", views.gallery_open, name="gallery_open"),
    path("new", views.gallery_new, name="gallery_new"),
    path("step", views.gallery_step, name="gallery_step"),
]
