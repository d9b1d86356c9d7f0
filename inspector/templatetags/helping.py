"""Help where it is needed: labels that link to the glossary, and the bar of the tour."""

from __future__ import annotations

from typing import Any

from django import template
from django.urls import reverse
from django.utils.html import format_html

from inspector.pages.shared import tour
from inspector.pages.shared.glossary import BY_LABEL

register = template.Library()


@register.filter
def glossary(label: str) -> str:
    """A label as a link to its term, where the glossary has one."""
    term = BY_LABEL.get(label)
    if term is None:
        return label
    link = '<a class="term-link" href="{}#{}" title="{}" hx-boost="false">{}</a>'
    return format_html(link, reverse("help"), term.anchor, term.meaning, label)


@register.inclusion_tag("inspector/help/_tour_bar.html", takes_context=True)
def tour_bar(context: template.Context) -> dict[str, Any]:
    """The stop of the tour that the address names."""
    session = context.get("session")
    pk = session.get("id") if isinstance(session, dict) else None
    return {} if pk is None else tour.bar(pk, context["request"].GET.get(tour.PARAMETER, ""))
