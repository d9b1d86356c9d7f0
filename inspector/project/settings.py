"""All settings, from the environment; without any the embedded default: SQLite, one machine, loopback, no login."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from inspector.project import environment as env

PACKAGE = Path(__file__).resolve().parents[1]
ROOT = PACKAGE.parent
CHECKOUT = (ROOT / "templates").is_dir() and (ROOT / "manage.py").is_file()
COMMAND = "python manage.py" if CHECKOUT else "compaction-inspector"  # runs the commands of management/
BUNDLE = ROOT if CHECKOUT else PACKAGE / "_bundle"  # a wheel carries both folders there


def default_data_dir() -> Path:
    """Where everything stored lives: ./data in a checkout, else the platform's folder for user data."""
    if CHECKOUT:
        return ROOT / "data"
    return Path(env.text("XDG_DATA_HOME", "~/.local/share")) / "compaction-inspector"


DATA_DIR = env.folder("DATA_DIR", default_data_dir())
DATA_DIR.mkdir(mode=0o700, parents=True, exist_ok=True)
RECORDINGS_DIR = DATA_DIR / "recordings"
INCOMING_DIR = DATA_DIR / "incoming"
for _folder in (RECORDINGS_DIR, INCOMING_DIR):
    _folder.mkdir(mode=0o700, exist_ok=True)


def secret_key() -> str:
    """The key from SECRET_KEY, else one made at the first start and kept in the data folder, readable by its owner."""
    if given := env.text("SECRET_KEY"):
        return given
    path = DATA_DIR / "secret-key"
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(secrets.token_urlsafe(50))
    except FileExistsError:
        pass
    return path.read_text().strip() or secrets.token_urlsafe(50)


SECRET_KEY = secret_key()
DEBUG = False
PORT = env.whole("PORT", 8000, 0, 65535)
BIND = env.text("BIND", "127.0.0.1")
PUBLIC_URL = env.text("PUBLIC_URL")  # https://inspector.example: behind a proxy
ALLOWED_HOSTS = env.names("ALLOWED_HOSTS", ["127.0.0.1", "localhost", "[::1]"])
if "*" in ALLOWED_HOSTS:
    raise ImproperlyConfigured("ALLOWED_HOSTS=* would accept any host name; list the names people use.")
EMBED_ORIGINS = env.origins("EMBED_ORIGINS")  # whose pages may show a published report in a frame
CSRF_TRUSTED_ORIGINS = [PUBLIC_URL] if PUBLIC_URL else []
# Whose X-Forwarded-For and X-Forwarded-Proto are believed: addresses and networks.
PROXIES = env.networks("PROXIES", ["127.0.0.1", "::1"] if PUBLIC_URL else [])

# Team mode: accounts, projects with roles, keys. Without it there is one project and no login, for this machine alone.
TEAM = env.flag("TEAM")
SSO_HEADER = env.text("SSO_HEADER")  # X-Forwarded-User, say: the name that a proxy in PROXIES has signed in
SSO_ROLE = env.choice("SSO_ROLE", "", ("", "viewer", "editor"))  # of new people in the first project; "": none
# An OpenID provider at which people sign in (accounts/oidc.py), and domains whose members need no invitation.
OIDC_ISSUER = env.issuer("OIDC_ISSUER")
OIDC_CLIENT_ID, OIDC_CLIENT_SECRET = env.text("OIDC_CLIENT_ID"), env.secret("OIDC_CLIENT_SECRET")
OIDC_NAME = env.text("OIDC_NAME", "single sign-on")  # on buttons and in sentences
OIDC_DOMAINS = [name.lower() for name in env.names("OIDC_DOMAINS", [])]
AUTH_USER_MODEL = "inspector.Account"
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "home"
LOGOUT_REDIRECT_URL = "login"
MIN_PASSWORD_CHARS = 12
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ["name"]},
    },
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": MIN_PASSWORD_CHARS},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]
AUTHENTICATION_BACKENDS = ["django.contrib.auth.backends.ModelBackend"]
if SSO_HEADER:
    AUTHENTICATION_BACKENDS.append("inspector.accounts.proxy.ProxyBackend")
# Requests that change something, within ten seconds, in team mode: of one account, and of one key.
RATE_CHANGES = env.whole("RATE_CHANGES", 100, 1, 1_000_000)
RATE_INGEST = env.whole("RATE_INGEST", 200, 1, 1_000_000)  # 20 streams, each sending twice a second

# Messages of near misses, overflows and loops: to these hosts alone (`host` or `host:port`; none: any public one),
# and to these networks, which may be private and without TLS.
WEBHOOK_HOSTS = env.names("WEBHOOK_HOSTS", [])
WEBHOOK_NETWORKS = env.networks("WEBHOOK_NETWORKS", [])

# Sizes in bytes. The body limit is kept before Django sees a byte (inspector/project/body_limit.py).
MAX_UPLOAD_BYTES = env.whole("MAX_UPLOAD_BYTES", 256 * 2**20, 1024, 64 * 2**30)
MAX_BATCH_BYTES = 32 * 2**20  # lines of a running agent, one of which may be as long as a line of a recording
MAX_BODY_BYTES = 2_621_440  # every other request; Django's own default for DATA_UPLOAD_MAX_MEMORY_SIZE
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_UPLOAD_BYTES + 2**20  # pasted text is a form field; the wrapper is the limit
FILE_UPLOAD_TEMP_DIR = str(INCOMING_DIR)
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_HANDLERS = ["inspector.ingest.uploads.HashedUploads"]
DATA_UPLOAD_MAX_NUMBER_FILES = 2_000
MAX_SOCKET_FRAME_BYTES = 2**20  # a batch of `guard_core.streaming.outbox`, which has at most 1,000,000 bytes, fits
MIN_FREE_BYTES = env.whole("MIN_FREE_BYTES", 100 * 2**20, 0, 2**50)  # below it /healthz says that the disk is full

INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.staticfiles",
    "channels",
    "csp",
    "django_htmx",
    "django_tasks",
    "django_tasks_db",
    "inspector",
]


def middleware(team: bool) -> list[str]:
    """What a request passes. Without team mode there are no accounts, and one project."""
    return [
        "inspector.project.middleware.RequestHeaders",
        "django.middleware.security.SecurityMiddleware",
        "servestatic.middleware.ServeStaticMiddleware",
        "csp.middleware.CSPMiddleware",
        "inspector.project.middleware.readable",
        *(["django.contrib.sessions.middleware.SessionMiddleware"] if team else []),
        "django.middleware.common.CommonMiddleware",
        *(["django.contrib.auth.middleware.AuthenticationMiddleware"] if team else []),
        *(["inspector.accounts.proxy.ProxySignIn"] if team else []),
        *(["inspector.accounts.gate.Gate"] if team else []),
        "django.middleware.csrf.CsrfViewMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
        "django_htmx.middleware.HtmxMiddleware",
        *([] if team else ["inspector.project.middleware.current_project"]),
        "inspector.project.middleware.in_one_thread",
    ]


MIDDLEWARE = middleware(TEAM)
LOCAL_URLS, TEAM_URLS = "inspector.project.urls", "inspector.project.team_urls"
ROOT_URLCONF = TEAM_URLS if TEAM else LOCAL_URLS
ASGI_APPLICATION = "inspector.project.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BUNDLE / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {"context_processors": ["django.template.context_processors.request"]},
    }
]


# How long a request waits for SQLite's one writer. Less than the 20 seconds that a page waits for an answer.
ANSWER_WAIT_SECONDS = 3.0  # that the answer to an upload waits for each small file; then the progress page takes over
LOCK_SECONDS = env.whole("LOCK_SECONDS", 15, 1, 600)
OUTLOOK_SECONDS = 1.0  # between two looks for alerts in a session that grows; its steps are counted at once
PAGE_MILLISECONDS = env.whole("PAGE_MILLISECONDS", 300, 1, 60_000)  # of computing that a replay takes from all pages


def database(url: str) -> dict[str, Any]:
    """A PostgreSQL database from DATABASE_URL, else SQLite in the data folder.

    SQLite: WAL and IMMEDIATE together, or concurrent writers fail at once; never ATOMIC_REQUESTS, which would give
    every page view the one write lock.
    """
    if not url:
        pragmas = (
            "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;"
            "PRAGMA foreign_keys=ON;PRAGMA journal_size_limit=67108864;"
            # 16 MB and 40 MB: texts have random keys, the index is wide; with the 2 and 4 MB of the default, pages are
            # read and written back again and again while a long session is stored.
            "PRAGMA cache_size=-8000;PRAGMA wal_autocheckpoint=10000;"
        )
        return {
            "ENGINE": "inspector.storage.sqlite3",
            "NAME": DATA_DIR / "inspector.sqlite3",
            "CONN_MAX_AGE": None,
            "OPTIONS": {"transaction_mode": "IMMEDIATE", "timeout": LOCK_SECONDS, "init_command": pragmas},
            "TEST": {"NAME": DATA_DIR / "test.sqlite3"},
        }
    parts = urlparse(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise ImproperlyConfigured("DATABASE_URL must look like postgresql://user:password@host:5432/name.")
    env.check_extra("DATABASE_URL", "postgres", "psycopg")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path.strip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or ""),
        "CONN_HEALTH_CHECKS": True,
    }


DATABASES = {"default": database(env.text("DATABASE_URL"))}
EMBEDDED = DATABASES["default"]["ENGINE"].endswith("sqlite3")
REDIS_URL = env.text("REDIS_URL")
if REDIS_URL:
    env.check_extra("REDIS_URL", "redis", "channels_redis")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "inspector.api.hint_layer.HintLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}
CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}
# Without names of queues any will do: each kind of job is one (inspector/jobs/queue.py).
TASKS = {"default": {"BACKEND": "django_tasks_db.DatabaseBackend", "QUEUES": [], "OPTIONS": {}}}

LANGUAGE_CODE = "en-gb"
TIME_ZONE = "UTC"
USE_TZ = True
USE_I18N = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BUNDLE / "static"]
STATIC_ROOT = DATA_DIR / "static"
# Files are served from their sources; names get a hash once `collectstatic` has run (the serve command runs it).
HASHED_STATIC = env.flag("HASHED_STATIC", False)
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage", "OPTIONS": {"location": str(DATA_DIR)}},
    "staticfiles": {
        "BACKEND": "servestatic.storage.CompressedManifestStaticFilesStorage"
        if HASHED_STATIC
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}
SERVESTATIC_USE_FINDERS = not HASHED_STATIC
SERVESTATIC_AUTOREFRESH = False
SERVESTATIC_MAX_AGE = 60
# gzip alone: Brotli's best level costs the first start 7 s of computing, for a sixth fewer bytes.
SERVESTATIC_USE_BROTLI = False

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "style-src-attr": ["'unsafe-inline'"],  # plotly positions its layers with style attributes
        "img-src": [SELF, "data:", "blob:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "base-uri": [NONE],
        "form-action": [SELF],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SECURE = PUBLIC_URL.startswith("https://")
# Cookies are shared by all ports of a host; under TLS browsers keep those named __Host- to this very host.
COOKIES = "__Host-inspector" if SECURE else f"inspector_{PORT}"
CSRF_COOKIE_NAME, SESSION_COOKIE_NAME = f"{COOKIES}_csrf", f"{COOKIES}_session"
CSRF_COOKIE_SAMESITE = SESSION_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_HTTPONLY = True
CSRF_FAILURE_VIEW = "inspector.pages.errors.views.csrf_failure"
if SECURE:
    CSRF_COOKIE_SECURE = SESSION_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000
    SECURE_SSL_REDIRECT = True
    # HSTS is asked for this host alone: what else runs below its name is not for this program to say.
    SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SECURE_REDIRECT_EXEMPT = [r"^(healthz|readyz|metrics)$"]  # asked from within, without the proxy and its TLS
METRICS_TOKEN = env.text("METRICS_TOKEN")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "inspector.project.logs.OneLineFormatter"},
        "json": {"()": "inspector.project.logs.JsonFormatter"},
    },
    "filters": {"without_traceback": {"()": "inspector.project.logs.WithoutTraceback"}},
    "loggers": {
        "django.security.DisallowedHost": {"filters": ["without_traceback"]},
        "channels_redis.pubsub": {"filters": ["without_traceback"]},  # once a second while Redis is away
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": env.choice("LOG_FORMAT", "line", ("line", "json"))}
    },
    "root": {"handlers": ["console"], "level": env.text("LOG_LEVEL", "WARNING")},
}
