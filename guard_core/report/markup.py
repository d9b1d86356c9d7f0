"""HTML built from text that is escaped wherever it comes in: there is no way to put markup in as a string."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_LEGIBLE = frozenset("\n\t")
VOID = frozenset({"meta", "br"})  # elements without an end tag


class Markup:
    """HTML that was built here."""

    __slots__ = ("html",)

    def __init__(self, html: str) -> None:
        self.html = html


Content = Markup | str | int | None | Iterable["Content"]


def visible(text: str) -> str:
    """Text with control characters, and those that change its direction or take no room, as escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() or char in _LEGIBLE else ascii(char)[1:-1] for char in text)


def content(value: Content) -> str:
    """Content as HTML: text is escaped, None is nothing, a list is its items one after the other."""
    if value is None:
        return ""
    if isinstance(value, Markup):
        return value.html
    if isinstance(value, str | int):
        return escape(visible(f"{value:,}" if isinstance(value, int) else value))
    return "".join(map(content, value))


def tag(element: str, /, *children: Content, **attributes: str | int | float | None) -> Markup:
    """An element. An attribute of None is left out; `_` in its name is `-`, and one at the end is dropped."""
    pairs = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "" if element in VOID else f"{content(children)}</{element}>"
    return Markup(f"<{element}{pairs}>{inside}")


def joined(items: Iterable[Markup]) -> Markup:
    """Elements one after the other."""
    return Markup("".join(item.html for item in items))
