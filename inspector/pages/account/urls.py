"""Signing in, joining, and one's own account; in team mode alone."""

from django.urls import path

from inspector.pages.account import single_sign_on, views

urlpatterns = [
    path("login/", views.SignIn.as_view(), name="login"),
    path("login/sso/", single_sign_on.begin, name="sso_begin"),
    path("login/sso/done", single_sign_on.done, name="sso_done"),
    path("login/sso/out", single_sign_on.out, name="sso_out"),
    path("logout/", views.SignOut.as_view(), name="logout"),
    path("join/<str:token>/", views.join, name="join"),
    path("account/", views.account, name="account"),
    path("account/password", views.password, name="account_password"),
    path("account/identities/<int:pk>/disconnect", views.disconnect, name="account_disconnect"),
    path("account/project", views.choose_project, name="account_project"),
    path("account/projects", views.new_project, name="project_new"),
]
