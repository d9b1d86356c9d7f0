"""The steps of a session, and the messages that they sent."""

from django.urls import path

from inspector.pages.steps import views

urlpatterns = [
    path("steps", views.session_steps, name="session_steps"),
    path("steps/list", views.step_list, name="step_list"),
    path("messages", views.step_messages, name="step_messages"),
    path("messages/<int:message>/part/<int:index>", views.message_part, name="message_part"),
    path("steps/<int:step>/messages/<int:position>/part/<int:index>", views.request_part, name="request_part"),
    path("selection/tokens", views.selection_tokens, name="selection_tokens"),
    path("system/<int:index>", views.system_part, name="system_part"),
]
