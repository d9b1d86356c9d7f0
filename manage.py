#!/usr/bin/env python
"""Django's command line for this project."""

import atexit
import gc
import os
import sys

if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")
    atexit.register(gc.freeze)  # else the end searches all modules for garbage: a fifth of a short command
    from django.core.management import execute_from_command_line

    execute_from_command_line(sys.argv)
