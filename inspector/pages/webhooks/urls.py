"""The webhooks of a project, below /webhooks/."""

from django.urls import path

from inspector.pages.webhooks import views

urlpatterns = [
    path("", views.webhooks, name="webhooks"),
    path("add", views.webhook_add, name="webhook_add"),
    path("<uuid:pk>/test", views.webhook_test, name="webhook_test"),
    path("<uuid:pk>/remove", views.webhook_remove, name="webhook_remove"),
]
