"""The comparison of recordings and replays, below /compare/."""

from django.urls import path

from inspector.pages.compare import views

urlpatterns = [
    path("", views.compare, name="compare"),
    path("share", views.compare_share, name="compare_share"),
]
