"""The lines of an export as JSON Schema: made from the values that they are read as, for a document of an API.

What the schema allows, `growing.entry_of` takes, and what it forbids is refused. Whether a line fits the lines before
it is no matter of its form (`growing.Growth`).
"""

from __future__ import annotations

from typing import Any

import msgspec

from guard_core.bounds import Count
from guard_core.defaults import MAX_WINDOW, MIN_WINDOW
from guard_core.events import Event
from guard_core.recordings.formats.native.format import EVENT, KINDS, NAME, VERSION
from guard_core.recordings.formats.native.growing import LINE_LIMITS
from guard_core.sessions import Session

Schema = dict[str, Any]
ANY = "Json"  # the name of the component for any value
_WINDOW = {"type": "integer", "anyOf": [{"const": 0}, {"minimum": MIN_WINDOW, "maximum": MAX_WINDOW}]}


def line_schema(template: str) -> tuple[Schema, dict[str, Schema]]:
    """The schema of one line, and the components that it refers to, by name. `template` makes a reference of a `name`,
    as "#/components/schemas/{name}"."""
    kinds = (Session, Event, *KINDS.values())
    (session, event, *others), components = msgspec.json.schema_components(kinds, ref_template=template)
    anything = {"$ref": template.format(name=ANY)}
    for schema in components.values():
        _open(schema, anything)
    components[ANY] = {
        "description": "Any JSON value. An integer beyond 64 bits is kept as text; one has "
        f"{LINE_LIMITS.digits} digits at most.",
        "anyOf": [
            {"type": ["null", "boolean", "string", "number"]},
            {"type": "array", "items": anything},
            {"type": "object", "additionalProperties": anything},
        ],
    }
    about = components["Session"]["properties"]  # `header_of` asks more of windows
    about["windows"]["items"]["prefixItems"][1] = _WINDOW
    about["window"]["anyOf"][0] = {**about["window"]["anyOf"][0], "properties": {"value": _WINDOW}}
    header = {"format": {"const": NAME}, "version": {"const": VERSION}, "session": session}
    numbered = {"index": msgspec.json.schema(Count), "events": event}
    lines = [
        {"type": "object", "required": list(header), "properties": header, "additionalProperties": anything},
        {"type": "object", "required": sorted(EVENT), "properties": numbered, "additionalProperties": False},
        *(
            {"type": "object", "required": [name], "properties": {name: schema}, "additionalProperties": False}
            for name, schema in zip(KINDS, others, strict=True)
        ),
    ]
    return {"anyOf": lines}, components


def _open(schema: Any, anything: Schema) -> None:
    """Write out what msgspec leaves open: keys that are passed over, and values of any kind, are JSON, too."""
    if isinstance(schema, list):
        for item in schema:
            _open(item, anything)
        return
    if not isinstance(schema, dict):
        return
    for name, value in schema.get("properties", {}).items():
        if not value.keys() - {"default", "title", "description"}:
            schema["properties"][name] = {**value, **anything}
    if isinstance(description := schema.get("description"), str):
        schema["description"] = " ".join(description.split())
    if schema.get("type") == "object":
        schema.setdefault("additionalProperties", anything)
    for value in schema.values():
        _open(value, anything)
