"""The estimator page of a session."""

from django.urls import path

from inspector.pages.estimator import views

urlpatterns = [
    path("estimator", views.session_estimator, name="session_estimator"),
    path("estimator/figure.json", views.estimator_figure, name="estimator_figure"),
]
