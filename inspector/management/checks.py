"""The system checks before a command that shows no page."""

from __future__ import annotations

from django.core.checks import Tags

# Those of `Tags.urls` load every page of the application, which is more than half of what such a command would compute.
WITHOUT_PAGES: list[str] = [Tags.caches, Tags.files, Tags.models, Tags.security]
