"""Before any setting is read: the environment wiped of this project's variables, a data folder of its own, and Ctrl-C
heard.

Loaded with `-p` on the command line of pytest, which comes before pytest-django reads the settings. The databases to
test on are named by TEST_DATABASE_URL and TEST_REDIS_URL; without them it is SQLite and the in-memory layer.

The processes of a run share the folder TEST_SHARED_DIR, made and removed by the one that starts them: for the whole
suite, on both databases, that is `run.py`.
"""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import tempfile

WIPED = (
    "ALLOWED_HOSTS",
    "BIND",
    "DATABASE_URL",
    "DATA_DIR",
    "HASHED_STATIC",
    "LOG_FORMAT",
    "LOG_LEVEL",
    "MAX_UPLOAD_BYTES",
    "METRICS_TOKEN",
    "OIDC_CLIENT_ID",
    "OIDC_CLIENT_SECRET",
    "OIDC_CLIENT_SECRET_FILE",
    "OIDC_DOMAINS",
    "OIDC_ISSUER",
    "OIDC_NAME",
    "PAGE_MILLISECONDS",
    "PORT",
    "PROXIES",
    "PUBLIC_URL",
    "RATE_CHANGES",
    "RATE_INGEST",
    "REDIS_URL",
    "SECRET_KEY",
    "SSO_HEADER",
    "SSO_ROLE",
    "TEAM",
    "WEBHOOK_HOSTS",
    "WEBHOOK_NETWORKS",
)

# What a shell runs in the background ignores Ctrl-C, and so would every process that a test starts and interrupts.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

for _name in WIPED:
    os.environ.pop(_name, None)


def _folder(name: str) -> str:
    made = tempfile.mkdtemp(prefix=f"inspector-{name}-")
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


os.environ["DATA_DIR"] = _folder("tests")
if not os.environ.get("TEST_SHARED_DIR"):
    os.environ["TEST_SHARED_DIR"] = _folder("shared")
if _database := os.environ.get("TEST_DATABASE_URL"):
    os.environ["DATABASE_URL"] = _database
