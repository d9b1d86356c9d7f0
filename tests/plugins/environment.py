"""Before any setting is read: the environment wiped of this project's variables, and a data folder of its own.

Loaded with `-p` on the command line of pytest, which comes before pytest-django reads the settings. The databases to
test on are named by TEST_DATABASE_URL and TEST_REDIS_URL; without them it is SQLite and the in-memory layer.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile

WIPED = (
    "ALLOWED_HOSTS",
    "BIND",
    "DATABASE_URL",
    "DATA_DIR",
    "HASHED_STATIC",
    "LOG_LEVEL",
    "MAX_UPLOAD_BYTES",
    "PORT",
    "PUBLIC_URL",
    "REDIS_URL",
    "SECRET_KEY",
)

for _name in WIPED:
    os.environ.pop(_name, None)
DATA_DIR = tempfile.mkdtemp(prefix="inspector-tests-")
atexit.register(shutil.rmtree, DATA_DIR, ignore_errors=True)
os.environ["DATA_DIR"] = DATA_DIR
if _database := os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = _database
