"""The team of a project, below /team/; in team mode alone."""

from django.urls import path

from inspector.pages.team import views

urlpatterns = [
    path("", views.team, name="team"),
    path("members/<int:pk>", views.member, name="team_member"),
    path("invitations", views.invite, name="team_invite"),
    path("invitations/<int:pk>/revoke", views.uninvite, name="team_uninvite"),
    path("keys", views.make_key, name="team_key"),
    path("keys/<int:pk>/revoke", views.revoke_key, name="team_key_revoke"),
    path("keeping", views.keeping, name="team_keeping"),
    path("audit", views.audit_log, name="team_audit"),
]
