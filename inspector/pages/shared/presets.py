"""Presets as any page reads them: what each selects now, and what of it is left out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from django.http import HttpRequest, QueryDict

from inspector.models import Preset
from inspector.pages.shared import saved_queries
from inspector.pages.shared.project import project_of
from inspector.replays.choice import Choice, no_longer_taken, parse_choice

WORDS = saved_queries.Words("preset", "Presets", "A project has", "Save these settings as")


class Offer(NamedTuple):
    """A preset and what it selects; `choice` is None where its policy is gone, `note` says what is left out."""

    row: Preset
    choice: Choice | None
    note: str


def offers(request: HttpRequest) -> Iterator[Offer]:
    """The presets of the project, by name."""
    return map(_offer, Preset.objects.of(project_of(request))[: saved_queries.MOST])


def _offer(row: Preset) -> Offer:
    stored = QueryDict(row.query.removeprefix("?")).dict()
    choice, errors = parse_choice(stored)
    if "policy" in errors:  # what it would be replayed under is another policy
        return Offer(row, None, f"There is no policy {stored['policy']} any more.")
    dropped = ", ".join(f"{name} {value}" for name, value in no_longer_taken(stored).items())
    note = f"Left out, because {choice.kind.title} no longer takes it: {dropped}." if dropped else ""
    return Offer(row, choice, note)
