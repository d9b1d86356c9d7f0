"""The overview of a session."""

from django.urls import path

from inspector.pages.overview import views

urlpatterns = [
    path("", views.session_overview, name="session_overview"),
    path("figure.json", views.session_figure, name="session_figure"),
]
