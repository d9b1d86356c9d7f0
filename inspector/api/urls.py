"""Addresses for programs."""

from django.urls import path

from inspector.api import traces
from inspector.api.rest import api

urlpatterns = [
    path("api/v1/", api.urls),
    path("v1/traces", traces.traces, name="otlp_traces"),
    path("v1/logs", traces.logs, name="otlp_logs"),
]
