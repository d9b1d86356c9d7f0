"""The entry of every request: body limit first, then Django for HTTP and channels for sockets."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "inspector.project.settings")

from django.core.asgi import get_asgi_application

django_application = get_asgi_application()

from channels.routing import ProtocolTypeRouter  # noqa: E402
from django.conf import settings  # noqa: E402

from inspector.project.body_limit import BodyLimit  # noqa: E402
from inspector.project.lifespan import Lifespan  # noqa: E402
from inspector.project.routing import sockets  # noqa: E402

application = Lifespan(
    ProtocolTypeRouter(
        {
            "http": BodyLimit(django_application, upload=settings.MAX_UPLOAD_BYTES, other=settings.MAX_BODY_BYTES),
            "websocket": sockets,
        }
    )
)
