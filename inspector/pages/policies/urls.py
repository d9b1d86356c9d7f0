"""The policies, and one of them."""

from django.urls import path

from inspector.pages.policies import views

urlpatterns = [
    path("", views.policies, name="policies"),
    path("<slug:name>", views.policy, name="policy"),
]
