"""Health checks."""

from django.urls import path

from inspector.pages.health import views

urlpatterns = [
    path("", views.health, name="health"),
]
