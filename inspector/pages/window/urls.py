"""The context window of a session."""

from django.urls import path

from inspector.pages.window import views

urlpatterns = [
    path("window", views.session_window, name="session_window"),
]
