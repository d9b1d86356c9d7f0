"""Files for download: no browser renders one as a page."""

from __future__ import annotations

from typing import TypeVar

from django.http.response import HttpResponseBase

Response = TypeVar("Response", bound=HttpResponseBase)


def sandboxed(response: Response) -> Response:
    """An answer that could do nothing even where a browser rendered it."""
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def attachment(response: Response, name: str) -> Response:
    """An answer that a browser keeps as a file of this name, which must be ASCII without quotes."""
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return sandboxed(response)
