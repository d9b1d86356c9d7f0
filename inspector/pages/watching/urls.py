"""The watched folders."""

from django.urls import path

from inspector.pages.watching import views

urlpatterns = [
    path("", views.watching, name="watching"),
    path("add", views.watching_add, name="watching_add"),
    path("<int:place>/remove", views.watching_remove, name="watching_remove"),
]
