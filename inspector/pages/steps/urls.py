"""The steps of a session, and the messages that they sent."""

from django.urls import path, re_path

from inspector.pages.steps import views

urlpatterns = [
    path("steps", views.session_steps, name="session_steps"),
    path("steps/list", views.step_list, name="step_list"),
    path("messages", views.step_messages, name="step_messages"),
    path("messages/<int:message>/parts/<int:part>", views.message_part, name="message_part"),
    path("steps/<int:step>/messages/<int:position>/parts/<int:part>", views.request_part, name="request_part"),
    path("selection/tokens", views.selection_tokens, name="selection_tokens"),
    path("system/parts/<int:part>", views.system_part, name="system_part"),
    re_path(
        r"^(?P<place>(?:steps/[0-9]{1,9}/)?messages/[0-9]{1,9})/part/(?P<index>[0-9]{1,6})$",
        views.old_part,
        name="part_old",
    ),
    re_path(r"^(?P<place>system)/(?P<index>[0-9]{1,6})$", views.old_part, name="system_part_old"),
]
