"""Lines of a session as a running agent sends them, and what a client of the API does with them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
from django.http import HttpResponse
from django.test import Client

from guard_core.recordings.formats import native
from guard_core.sessions import Session as CoreSession


def lines_of(session: CoreSession) -> list[dict[str, Any]]:
    """The lines of the export: the header, then the events with each call and compaction where it was known."""
    header, *rest = map(msgspec.json.decode, native.write(session).splitlines())
    header.pop("counts")
    places = [(_place(line), number, line) for number, line in enumerate(rest)]
    return [header, *(line for _, _, line in sorted(places, key=lambda item: item[:2]))]


def _place(line: dict[str, Any]) -> int:
    if "index" in line:
        return int(line["index"])
    (value,) = line.values()
    response = value.get("response")
    return int(value["at"] if response is None else response + 1)


def send(client: Client, name: str, first: int, lines: list[Any], **more: Any) -> HttpResponse:
    """One batch, as JSON."""
    body = json.dumps({"first": first, "lines": lines, **more.pop("beside", {})})
    return client.post(f"/api/v1/sessions/{name}/events", body, content_type="application/json", **more)
