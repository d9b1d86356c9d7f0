"""Sharing a session, below its own address."""

from django.urls import path

from inspector.pages.share import views

urlpatterns = [path("share", views.share_new, name="session_share")]
