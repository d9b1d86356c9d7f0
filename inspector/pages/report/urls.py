"""Published reports, below /r/."""

from django.urls import path

from inspector.pages.report import views

urlpatterns = [
    path("<str:token>/", views.report, name="report"),
    path("<str:token>/<str:name>", views.report_file, name="report_file"),
]
