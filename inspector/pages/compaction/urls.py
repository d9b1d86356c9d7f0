"""One compaction of a session."""

from django.urls import path, re_path

from inspector.pages.compaction import together, views

urlpatterns = [
    path("c/<int:number>/", views.compaction, name="compaction"),
    path("c/<int:number>/compare", together.compactions_together, name="compactions_together"),
    path("c/<int:number>/compare/share", together.compactions_share, name="compactions_share"),
    re_path(r"^c/(?P<letter>[rp])(?P<index>[0-9]{1,6})/$", views.old_address, name="compaction_old"),
]
