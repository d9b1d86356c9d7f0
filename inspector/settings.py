"""The settings under the name that earlier versions had: DJANGO_SETTINGS_MODULE=inspector.settings."""

from inspector.project.settings import *  # noqa: F403
