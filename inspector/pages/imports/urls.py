"""One import, below /imports/."""

from django.urls import path

from inspector.pages.imports import views

urlpatterns = [
    path("<uuid:pk>/", views.detail, name="import_detail"),
    path("<uuid:pk>/status", views.status, name="import_status"),
    path("<uuid:pk>/cancel", views.cancel, name="import_cancel"),
    path("<uuid:pk>/again", views.again, name="import_again"),
    path("<uuid:pk>/choose", views.choose, name="import_choose"),
]
