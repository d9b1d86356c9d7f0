"""What the addresses of the stepper carry along: the mark A, a search, the filter of the list."""

from __future__ import annotations

from inspector.pages.session.frame import Frame, number

LONGEST_FILTER = 20  # characters of the name of a filter


def kept(page: Frame) -> dict[str, str]:
    """The settings of the address, for forms that must keep them."""
    return {**page.choice.pairs(), "side": page.shown_side, **marked(page)}


def marked(page: Frame) -> dict[str, str]:
    """What the address asks to mark: a step as A, and the matches of a search; and the filter of the list."""
    return {"a": mark(page), "search": page.search.text, "list": page.request.GET.get("list", "")[:LONGEST_FILTER]}


def mark(page: Frame) -> str:
    """The step that is marked as A, as the address carries it; "" for none."""
    typed = number(page.request, "a", 0, 0, page.count)
    return str(typed) if typed else ""
