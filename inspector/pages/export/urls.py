"""A session as a file."""

from django.urls import path

from inspector.pages.export import views

urlpatterns = [path("export", views.session_export, name="session_export")]
