"""Help, and the list that goes anywhere."""

from django.urls import path

from inspector.pages.help import views

urlpatterns = [
    path("help/", views.help_page, name="help"),
    path("help/tour", views.tour_page, name="tour"),
    path("go", views.go, name="go"),
]
