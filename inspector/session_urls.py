"""Addresses of one session's pages, below /s/<uuid>/."""

from django.urls import path, re_path

from inspector.views import compactions, estimator, replays, sessions, steps, windows

urlpatterns = [
    path("", sessions.session_overview, name="session_overview"),
    path("figure.json", sessions.session_figure, name="session_figure"),
    path("estimator", estimator.session_estimator, name="session_estimator"),
    path("estimator/figure.json", estimator.estimator_figure, name="estimator_figure"),
    path("replay/cancel", replays.cancel_replay, name="replay_cancel"),
    path("replay/cancelled", replays.cancelled_replay, name="replay_cancelled"),
    path("replay/again", replays.run_again, name="replay_again"),
    path("window", windows.session_window, name="session_window"),
    path("steps", steps.session_steps, name="session_steps"),
    path("steps/list", steps.step_list, name="step_list"),
    path("messages", steps.step_messages, name="step_messages"),
    path("messages/<int:message>/part/<int:index>", steps.message_part, name="message_part"),
    path("steps/<int:step>/messages/<int:position>/part/<int:index>", steps.request_part, name="request_part"),
    path("system/<int:index>", steps.system_part, name="system_part"),
    path("c/<int:number>/", compactions.compaction, name="compaction"),
    re_path(r"^c/(?P<letter>[rp])(?P<index>[0-9]{1,6})/$", compactions.old_address),
]
