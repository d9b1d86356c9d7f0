"""How far a session has grown."""

from django.urls import path

from inspector.pages.growth import views

urlpatterns = [
    path("growth", views.growth, name="session_growth"),
]
