"""One part of a message in the form that a reader asks for: raw text, markdown, a JSON tree, a picture, plain bytes."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import render

from guard_core.events import Event, MediaPart, Part, ReasoningPart, TextPart, ToolResultPart
from inspector.pages.session.frame import Frame, number
from inspector.pages.shared import json_tree, parts
from inspector.pages.shared.attachments import sandboxed
from inspector.pages.shared.markdown import markdown_piece
from inspector.pages.shared.numbers import size
from inspector.storage.images import image_of, size_of

RAW, MARKDOWN, JSON, TEXT, IMAGE = "raw", "markdown", "json", "text", "image"
PIECE_CHARS = 64_000  # of raw text in the reader
REFERRED_TO = "The recording only refers to this picture. Nothing is fetched."
NOT_SHOWN = (
    "This picture cannot be shown: it is not on the message's own line of the uploaded file, or it is not PNG, JPEG, "
    "GIF or WebP."
)
BODIES = {RAW: "_raw.html", MARKDOWN: "_markdown.html", JSON: "_json.html"}


def reader(page: Frame, part: Part, path: str, title: str, event: Event | None = None, index: int = 0) -> HttpResponse:
    """The part in the form of `?as=`. `event`: the message of the log that holds it, for a picture's bytes."""
    form = page.request.GET.get("as", RAW)
    text = parts.display_text(part)
    if form == TEXT:
        content = text.encode("utf-8", "replace")
        return sandboxed(HttpResponse(content, content_type="text/plain; charset=utf-8"))
    if form == IMAGE:
        picture = None if event is None else image_of(page.row, event, index)
        if picture is None:
            raise Http404(
                "The stored file does not hold the bytes of this picture, or not in a form that can be shown."
            )
        return sandboxed(HttpResponse(picture[1], content_type=picture[0]))
    forms = _forms(part, text)
    form = form if form in forms else RAW

    def url(**values: Any) -> str:
        parameters = {
            "side": page.shown_side,
            **{name: value for name, value in values.items() if value not in (None, "")},
        }
        return path + page.choice.query(**parameters)

    body = _body(page, form, part, text, url)
    context = {
        **body,
        "title": title,
        "form": form,
        "chars": f"{len(text):,}",
        "address": url(**{"as": form}),
        "copied": url(**{"as": TEXT}),
        "tabs": [
            {"label": label, "url": url(**{"as": each}), "current": each == form} for each, label in forms.items()
        ],
        "body": f"inspector/steps/{BODIES[form]}",
        "session": page.session(),
        "urls": page.links,
        "picture": _picture(page, part, event, index, url),
    }
    htmx = bool(getattr(page.request, "htmx", False))
    if htmx and page.request.GET.get("only") == "body":  # one more piece, or one more level of a tree
        return render(page.request, f"inspector/steps/{BODIES[form]}", context)
    template = "inspector/steps/_reader.html" if htmx else "inspector/steps/part.html"
    return render(page.request, template, context)


def _forms(part: Part, text: str) -> dict[str, str]:
    forms = {RAW: "raw"}
    if isinstance(part, TextPart | ReasoningPart | ToolResultPart) and text:
        forms[MARKDOWN] = "markdown"
    if not isinstance(part, MediaPart) and (not isinstance(part, TextPart) or json_tree.looks_like_json(text)):
        forms[JSON] = "JSON"
    return forms


def _body(page: Frame, form: str, part: Part, text: str, url: Any) -> dict[str, Any]:
    if form == JSON:
        return _tree(page, part, url)
    start = number(page.request, "from", 0, 0, len(text))
    if form == MARKDOWN:
        piece = markdown_piece(text, start)
        following = piece.next
        shown: dict[str, Any] = {"html": piece.html}
    else:
        raw = parts.piece(text, start, PIECE_CHARS)
        following, shown = raw["next"], {"text": raw["text"]}
    if following is None:
        return shown
    more = url(**{"as": form, "from": following})
    return {**shown, "more": more, "left": f"{len(text) - following:,}"}


def _tree(page: Frame, part: Part, url: Any) -> dict[str, Any]:
    """A level of the value, or a text of it in pieces."""
    path = page.request.GET.get("path", "")
    whole = json_tree.value_of(part)
    if whole is None:
        return {"note": "This part holds no JSON object or list."}
    try:
        value = json_tree.at_path(whole, path)
    except json_tree.NoSuchPlace as error:
        raise Http404("There is no such place in this value.") from error
    if not isinstance(value, dict | list):
        text = value if isinstance(value, str) else str(value)
        start = number(page.request, "from", 0, 0, len(text))
        piece = parts.piece(text, start, PIECE_CHARS)
        more = url(**{"as": JSON, "path": path, "from": piece["next"]}) if piece["next"] else ""
        return {"text": piece["text"], "more": more, "left": f"{piece['left']:,}"}
    start = number(page.request, "from", 0, 0, len(value))
    rows = json_tree.level(value, path, start)
    for row in rows:
        row["url"] = url(**{"as": JSON, "path": row["path"]})
    stop = start + len(rows)
    more = url(**{"as": JSON, "path": path, "from": stop}) if stop < len(value) else ""
    return {"rows": rows, "is_empty": not value, "more": more, "left": f"{len(value) - stop:,}"}


def _picture(page: Frame, part: Part, event: Event | None, index: int, url: Any) -> dict[str, Any]:
    """What is shown of a picture: its address and size where its bytes can be shown, else why not."""
    if not isinstance(part, MediaPart) or not part.mime.startswith("image/"):
        return {}
    words = {"size": size(part.size), "mime": parts.visible(part.mime)}
    if not part.size:
        return {**words, "note": REFERRED_TO}
    picture = None if event is None else image_of(page.row, event, index)
    if picture is None:
        return {**words, "note": NOT_SHOWN}
    return {**words, "url": url(**{"as": IMAGE}), "pixels": size_of(*picture)}
