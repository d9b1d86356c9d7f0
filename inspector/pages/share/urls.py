"""Shares as their owners see them, below /shares/."""

from django.urls import path

from inspector.pages.share import views

urlpatterns = [
    path("", views.shares, name="shares"),
    path("<uuid:pk>/", views.share, name="share"),
    path("<uuid:pk>/preview", views.share_preview, name="share_preview"),
    path("<uuid:pk>/review", views.share_review, name="share_review"),
    path("<uuid:pk>/publish", views.share_publish, name="share_publish"),
    path("<uuid:pk>/revoke", views.share_revoke, name="share_revoke"),
]
