"""Text search over all sessions, and over one."""

from django.urls import path

from inspector.pages.search import views

urlpatterns = [
    path("s/<uuid:pk>/search", views.session_search, name="session_search"),
    path("search", views.search, name="search"),
]
