"""Presets in the form of a sweep: each is a link to the form with its policy and settings as the fixed ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from django.http import HttpRequest
from django.urls import reverse

from inspector.pages.shared import saved_queries
from inspector.pages.shared.presets import WORDS, Offer, offers
from inspector.pages.sweep.question import LONGEST
from inspector.replays.choice import Choice

FIXED = ("policy", "profile", "window", "settings")  # fields that a preset fills


def menu(request: HttpRequest, typed: Mapping[str, str], others: list[tuple[str, str]]) -> dict[str, Any]:
    """What `_saved_queries.html` shows. `typed`: the fields of the form; `others`: what else its address keeps."""
    items = (_item(offer, typed, others) for offer in offers(request))
    return saved_queries.menu(WORDS, items, may_save=False)


def _item(offer: Offer, typed: Mapping[str, str], others: list[tuple[str, str]]) -> dict[str, Any]:
    row, choice, note = offer
    item = {"id": row.pk, "name": row.name, "note": note}
    if choice is None:
        return {**item, "current": False}
    fields, left_out = filled(choice)
    if left_out:
        words = ", ".join(f"{name} {value}" for name, value in left_out.items())
        item["note"] = f"{note} Left out, because the form of a sweep cannot hold it: {words}.".strip()
    pairs = [*others, *((name, value) for name, value in fields.items() if value)]
    return {
        **item,
        "url": f"{reverse('sweep_new')}?{urlencode(pairs)}#which-settings",
        "current": all(fields[name] == typed[name] for name in FIXED),
        "words": choice.words(),
    }


def filled(choice: Choice) -> tuple[dict[str, str], dict[str, str]]:
    """The fields of the form that settings of a replay fill, and of those settings what the form cannot hold: a sweep
    replays summaries as recorded, and a comma separates two fixed settings."""
    left_out = {"summary": choice.summary} if choice.summary else {}
    settings = ""
    for key, value in choice.settings:
        longer = ", ".join(filter(None, (settings, f"{choice.kind.setting(key).name}={value}")))
        if "," in value or value != value.strip() or len(longer) > LONGEST:
            left_out[key] = value
        else:
            settings = longer
    fields = {"policy": choice.kind.name, "profile": choice.in_profile, "window": choice.window, "settings": settings}
    return fields, left_out
