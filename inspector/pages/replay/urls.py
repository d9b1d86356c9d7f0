"""A long replay of a session."""

from django.urls import path

from inspector.pages.replay import views

urlpatterns = [
    path("replay/cancel", views.cancel_replay, name="replay_cancel"),
    path("replay/cancelled", views.cancelled_replay, name="replay_cancelled"),
    path("replay/again", views.run_again, name="replay_again"),
]
