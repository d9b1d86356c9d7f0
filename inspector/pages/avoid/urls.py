"""What would have avoided the findings of a session."""

from django.urls import path

from inspector.pages.avoid import views

urlpatterns = [path("avoid", views.session_avoid, name="session_avoid")]
