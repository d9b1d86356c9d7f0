"""How a running agent is connected to this server."""

from django.urls import path

from inspector.pages.connect import views

urlpatterns = [
    path("connect/", views.connect, name="connect"),
]
