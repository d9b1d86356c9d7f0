"""Numbers with their noun, for templates that show rows as they are."""

from __future__ import annotations

from django import template

from guard_core.sessions import Sourced
from guard_core.windows.window_evidence import shown_source
from inspector.pages.shared import numbers, parts

register = template.Library()


@register.filter
def grouped(value: object) -> str:
    """12345 as "12,345"; anything that is not a number as it is."""
    return f"{value:,}" if isinstance(value, int) else str(value)


@register.filter
def counted(value: object, noun: str) -> str:
    """3 and "session" as "3 sessions"."""
    return f"{grouped(value)} {noun}{'' if value == 1 else 's'}"


@register.filter
def in_order(title: object) -> str:
    """A title of a row with a mark in place of what turns the reading order."""
    return parts.in_order(str(title))


@register.filter
def source(window: Sourced) -> str:
    """Where a window comes from; one that a program was given is not the user's."""
    return shown_source(window).value


@register.filter
def size(count: int) -> str:
    """Bytes as everywhere else: 2.2 MB."""
    return numbers.size(count)
