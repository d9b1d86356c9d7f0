"""Help where it is needed (labels that link to the glossary, the bar of the tour), and who may use a form."""

from __future__ import annotations

from functools import cache
from typing import Any

from django import template
from django.http import HttpRequest
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html

from inspector.accounts import access
from inspector.pages.shared import tour
from inspector.pages.shared.glossary import BY_LABEL
from inspector.pages.shared.keys import SHORTCUTS

register = template.Library()


@register.filter
def glossary(label: str) -> str:
    """A label as a link to its term, where the glossary has one."""
    term = BY_LABEL.get(label)
    if term is None:
        return label
    link = '<a class="term-link" href="{}#{}" title="{}" hx-boost="false">{}</a>'
    return format_html(link, reverse("help"), term.anchor, term.meaning, label)


@register.filter
def meaning(label: object) -> str:
    """What a label means, as the glossary has it, for a tooltip; empty where it has none."""
    term = BY_LABEL.get(str(label)) or BY_LABEL.get(str(label).lower())
    return "" if term is None else term.meaning


@register.filter
def may(request: HttpRequest, name: str) -> bool:
    """May whoever asked for the page change something at the address of this name: forms that would be refused are left
    out."""
    return access.allows(request, name)


@register.simple_tag
@cache
def keys() -> str:
    """The list of keyboard shortcuts, rendered once: every page has it."""
    return render_to_string("inspector/_keys.html", {"columns": SHORTCUTS})


@register.inclusion_tag("inspector/help/_tour_bar.html", takes_context=True)
def tour_bar(context: template.Context) -> dict[str, Any]:
    """The stop of the tour that the address names."""
    session = context.get("session")
    pk = session.get("id") if isinstance(session, dict) else None
    return {} if pk is None else tour.bar(pk, context["request"].GET.get(tour.PARAMETER, ""))
