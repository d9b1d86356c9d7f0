"""Markdown of a session as a page shows it: known tags around escaped text; no links, no pictures, no HTML."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from django.utils.html import escape
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt
from markdown_it.token import Token

from inspector.pages.shared.parts import visible

PIECE_CHARS = 12_000  # of one piece; the parser needs half a second for as many brackets
MOST_TAGS = 600  # of one piece, so that a page stays below 2,000 nodes
# Headings become paragraphs: those of a message are not those of the page.
TAGS = {name: name for name in ("p", "ul", "ol", "li", "blockquote", "table", "thead", "tbody", "tr", "th", "td")}
TAGS |= {"em": "em", "strong": "strong", "s": "s"} | {f"h{level}": "p" for level in range(1, 7)}


@dataclass(frozen=True)
class MarkdownPiece:
    """Markup that is safe to show, and the character at which the next piece begins (None: that was all)."""

    html: SafeString
    next: int | None


@cache
def _parser() -> MarkdownIt:
    """One for all texts. HTML in them is shown as text."""
    return MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])


def markdown_piece(text: str, start: int) -> MarkdownPiece:
    """The blocks of a text from a character on, as many as one piece holds. A block that is larger is shown as text."""
    whole = text[start : start + PIECE_CHARS]
    is_last = start + len(whole) >= len(text)
    tokens = _parser().parse(whole)
    ends = _block_ends(tokens, whole)
    fitting = [(index, stop) for index, stop, tags in ends if tags <= MOST_TAGS]
    if not is_last and len(fitting) == len(ends) > 1:
        fitting.pop()  # the last block may continue in the next piece
    if not fitting and whole:
        return MarkdownPiece(_element("pre", escape(visible(whole))), None if is_last else start + len(whole))
    index, stop = fitting[-1] if fitting else (0, 0)
    if is_last and len(fitting) == len(ends):
        return MarkdownPiece(SafeString(_markup(tokens)), None)
    return MarkdownPiece(SafeString(_markup(tokens[:index])), start + stop)


def _block_ends(tokens: list[Token], text: str) -> list[tuple[int, int, int]]:
    """For each block of the outermost level: the tokens, the characters and the tags up to its end."""
    places = [0]
    for line in text.split("\n"):
        places.append(places[-1] + len(line) + 1)
    ends: list[tuple[int, int, int]] = []
    tags = last_line = 0
    for index, token in enumerate(tokens, 1):
        tags += 1 if token.nesting >= 0 else 0
        tags += sum(child.nesting >= 0 and child.type != "text" for child in token.children or ())
        last_line = token.map[1] if token.map and token.level == 0 else last_line
        if token.level == 0 and token.nesting <= 0:
            ends.append((index, min(len(text), places[min(last_line, len(places) - 1)]), tags))
    return ends


def _markup(tokens: list[Token]) -> str:
    return "".join(_inline(token.children) if token.children is not None else _block(token) for token in tokens)


def _block(token: Token) -> str:
    """A block without children: text that is shown as it is, a line, or one end of an element."""
    if token.type in {"fence", "code_block"}:
        return _element("pre", escape(visible(token.content)))
    if token.type == "hr":
        return "<hr>"
    return _tag(token)


def _inline(tokens: list[Token]) -> str:
    """Text and emphasis; the address of a link or picture is said in words behind it, and nothing can be followed."""
    written, addresses = [], []
    for token in tokens:
        if token.type == "link_open":
            addresses.append(str(token.attrs.get("href", "")))
        elif token.type == "link_close":
            written.append(_address(addresses.pop()))
        elif token.type == "image":
            written.append(f"[picture: {escape(visible(token.content))}]{_address(str(token.attrs.get('src', '')))}")
        elif token.type == "code_inline":
            written.append(_element("code", escape(visible(token.content))))
        elif token.type in {"softbreak", "hardbreak"}:
            written.append("<br>" if token.type == "hardbreak" else "\n")
        else:
            written.append(_tag(token))
    return "".join(written)


def _tag(token: Token) -> str:
    """A known tag without any attribute, or the text of the token."""
    tag = TAGS.get(token.tag, "")
    if not tag or token.nesting == 0:
        return escape(visible(token.content))
    if token.hidden:  # the paragraphs of a tight list
        return ""
    if token.nesting < 0:
        return f"</{tag}>"
    return f'<{tag} class="md-heading">' if token.tag != tag else f"<{tag}>"


def _address(address: str) -> str:
    return f' <span class="muted">({escape(visible(address[:200]))})</span>' if address else ""


def _element(tag: str, escaped: str) -> SafeString:
    return SafeString(f"<{tag}>{escaped}</{tag}>")
