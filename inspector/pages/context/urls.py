"""The page of what fills the context, /s/<uuid>/context."""

from django.urls import path

from inspector.pages.context import views

urlpatterns = [
    path("difference", views.session_difference, name="session_difference"),
    path("context", views.session_context, name="session_context"),
]
