"""An address that no rule names."""

from django.http import HttpResponse
from django.urls import path

from inspector.project.team_urls import handler404, urlpatterns

urlpatterns = [*urlpatterns, path("forgotten/", lambda request: HttpResponse("seen"), name="forgotten")]
__all__ = ["handler404", "urlpatterns"]
