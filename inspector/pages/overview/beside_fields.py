"""What is said beside the fields of the what-if, as data for a page that has these fields already."""

from __future__ import annotations

from typing import Any


def beside_fields(form: dict[str, Any], saved: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """By the name of an element in the templates (`data-fresh`) its `text`, the `value` that was replayed or, of a
    hidden field, is sent, and its attributes: a text, or whether it has one. `form` is of replays.choice, `saved` of
    shared.saved_queries."""
    beside: dict[str, dict[str, Any]] = {
        "reset": {"hidden": not form["changed"]},
        "error": {"text": form["error"]},
        "saved-label": {"text": saved["label"]},
        "saved-current": {"text": saved["current"]},
        "saved-query": {"value": saved["query"]},
        "saved-query-undo": {"value": saved["query"]},
        "saved-help": {"text": saved["help"]},
    }
    for field in (*form["fields"], *form["more"]):
        beside |= _beside(field)
    for row in saved["rows"]:
        beside[f"saved-{row['id']}"] = {"aria-current": "true" if row["current"] else False}
        beside[f"saved-query-{row['id']}"] = beside[f"saved-query-renaming-{row['id']}"] = {"value": saved["query"]}
    return beside


def _beside(field: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """One field and its note."""
    name, is_wrong = field["name"], bool(field["error"])
    options = [*field.get("choices", ()), *(item for group in field.get("groups", ()) for item in group["choices"])]
    # What the field has if the form is written anew: of a menu the option that is chosen, else its first.
    chosen = next((item for item in options if item["selected"]), options[0]) if options else field
    control = {"value": str(chosen["value"]), "disabled": field["ignored"]}
    control["aria-invalid"] = "true" if is_wrong else False
    if "choices" not in field and "groups" not in field:
        control["placeholder"] = field["placeholder"]
    note = {"text": field["note"], "class": "field-error" if is_wrong else "field-help"}
    return {name: control, f"note-{name}": note}
