"""What machines ask that watch over the server."""

from django.urls import path

from inspector.pages.health import views

urlpatterns = [
    path("healthz", views.health, name="health"),
    path("readyz", views.ready, name="ready"),
    path("metrics", views.metrics, name="metrics"),
]
