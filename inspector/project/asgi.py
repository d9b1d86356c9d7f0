"""The entry of every request: what a proxy says, the body limit, then Django for HTTP and channels for sockets."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")

from typing import Any

from django.core.asgi import get_asgi_application
from django.core.handlers.asgi import ASGIHandler, ASGIRequest

django_application: ASGIHandler = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from inspector.accounts.scopes import may_send  # noqa: E402
from inspector.project.body_limit import BodyLimit  # noqa: E402
from inspector.project.lifespan import Lifespan  # noqa: E402
from inspector.project.proxies import Proxies  # noqa: E402
from inspector.project.routing import sockets  # noqa: E402
from inspector.project.threads import RequestThreads  # noqa: E402


class ReadableRequest(ASGIRequest):
    """Django's, without the exceptions that a content type raises in it before any of its own code can answer: one that
    cannot be read is none, and `readable` answers for an encoding in which Python cannot read the query."""

    def _set_content_type_params(self, meta: dict[str, Any]) -> None:
        """Django asks this while it makes the request."""
        self.content_type, self.content_params = "", {}
        try:
            super()._set_content_type_params(meta)  # type: ignore[misc]  # the stubs leave it out
        except (LookupError, ValueError):
            self._encoding = None


django_application.request_class = ReadableRequest
application = Lifespan(
    Proxies(
        ProtocolTypeRouter(
            {
                "http": BodyLimit(
                    RequestThreads(django_application),
                    upload=settings.MAX_UPLOAD_BYTES,
                    batch=settings.MAX_BATCH_BYTES,
                    other=settings.MAX_BODY_BYTES,
                    may_send=may_send,
                ),
                "websocket": sockets,
            }
        ),
        settings.PROXIES,
        settings.SSO_HEADER,
    )
)
