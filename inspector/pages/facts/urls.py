"""The facts page of a session."""

from django.urls import path

from inspector.pages.facts import views

urlpatterns = [path("facts", views.session_facts, name="session_facts")]
