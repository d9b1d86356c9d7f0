"""The agents that run now."""

from django.urls import path

from inspector.pages.running import views

urlpatterns = [
    path("running/", views.running, name="running"),
]
