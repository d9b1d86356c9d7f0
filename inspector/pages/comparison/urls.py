"""The comparison of all policies on one session."""

from django.urls import path

from inspector.pages.comparison import views

urlpatterns = [path("policies", views.session_policies, name="session_policies")]
