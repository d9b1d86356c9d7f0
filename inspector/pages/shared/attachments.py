"""Files for download: no browser renders one as a page."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from typing import Any, TypeVar

from django.http import HttpResponse
from django.http.response import HttpResponseBase

FORMULA_SIGNS = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet computes what begins so

Response = TypeVar("Response", bound=HttpResponseBase)


def sandboxed(response: Response) -> Response:
    """An answer that could do nothing even where a browser rendered it."""
    response.headers["Content-Security-Policy"] = "sandbox; default-src 'none'"
    return response


def attachment(response: Response, name: str) -> Response:
    """An answer that a browser keeps as a file of this name, which must be ASCII without quotes."""
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return sandboxed(response)


def csv_file(name: str, header: Iterable[str], rows: Iterable[Iterable[Any]]) -> HttpResponse:
    """A table as a file of comma-separated values, none of which a spreadsheet computes."""
    response = attachment(HttpResponse(content_type="text/csv; charset=utf-8"), name)
    writer = csv.writer(response)
    writer.writerow(header)
    for row in rows:
        writer.writerow(
            [f"'{value}" if isinstance(value, str) and value.startswith(FORMULA_SIGNS) else value for value in row]
        )
    return response
