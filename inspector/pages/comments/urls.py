"""The comments of a session, below its own address."""

from django.urls import path

from inspector.pages.comments import views

urlpatterns = [
    path("comments", views.session_comments, name="session_comments"),
    path("comments/<uuid:pk>", views.comment, name="comment"),
    path("comments/<uuid:pk>/edit", views.edit, name="comment_edit"),
    path("comments/<uuid:pk>/delete", views.delete, name="comment_delete"),
    path("comments/<uuid:pk>/resolve", views.resolve, name="comment_resolve"),
]
