"""The rule page of a session."""

from django.urls import path

from inspector.pages.rule import views

urlpatterns = [
    path("rule", views.session_rule, name="session_rule"),
    path("rule/settings", views.session_rule_settings, name="session_rule_settings"),
]
