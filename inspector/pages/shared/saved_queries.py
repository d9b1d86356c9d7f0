"""A query string under a name, as saved views and presets have it: read from its form, checked, stored, shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, NamedTuple

from django.core import signing
from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict

from inspector.models import Project
from inspector.pages.shared import parameters
from inspector.storage.deleting import UNDO_FOR

LONGEST_NAME = 60  # characters
LONGEST_QUERY = 4_000
MOST = 100  # of a list
PLACE = "#saved"  # of the opened menu in its page: what was changed there leads back to it
REFUSED = "refused"  # parameter of an address, and the salt of its text


class DeletedQuery(NamedTuple):
    """What brings a deleted one back: its project and key, its name and its query string."""

    project: str
    pk: str
    name: str
    query: str


class RefusedName(NamedTuple):
    """A name that was not taken."""

    name: str
    sentence: str  # what is wrong
    pk: str  # key of the row that was to be renamed; "" of one that was to be added


class Words(NamedTuple):
    """What pages call one kind of them."""

    one: str
    all: str  # label of the menu
    limit: str  # begins the sentence that there are too many
    save: str  # label of the field for the name


def given_query(request: HttpRequest) -> QueryDict:
    """The query string that a form of the menu has."""
    text = request.POST.get("query", "").removeprefix("?")
    return QueryDict(text.encode("utf-8", "replace").decode()[:LONGEST_QUERY])


def place(more: Mapping[str, str]) -> str:
    """The part of a page that an address with these parameters leads to: the field whose name was refused, if any."""
    known = refusal(more)
    if known is None:
        return PLACE
    return f"#saved-name-{known.pk}" if known.pk else "#saved-name"


def menu(words: Words, items: Iterable[dict[str, Any]], **more: Any) -> dict[str, Any]:
    """What `_saved_queries.html` shows. `items`: id, name, address of each, those that delete and rename it, is it the
    current one, and what else is said of it (words, note). `more`: query (of this page), save (address), may_save,
    help, after a deletion undo (see `offer`), and after a refused name refused (see `refusal`)."""
    refused: RefusedName | None = more.pop("refused", None)
    of_row = refused.pk if refused else ""
    rows = [{**item, "refused": refused if str(item["id"]) == of_row else None} for item in items]
    current = next((row["name"] for row in rows if row["current"]), "")
    return {
        "words": words,
        "rows": rows,
        "label": f"{words.one.capitalize()}:" if current else words.all,
        "current": current,
        "open": bool(refused) or any(row["current"] and row.get("note") for row in rows),
        "refused": None if of_row else refused,
        "longest_name": LONGEST_NAME,
        **more,
    }


def store(request: HttpRequest, words: Words, rows: QuerySet[Any], query: str, **columns: Any) -> dict[str, str]:
    """Add a query string, as its page writes it, to `rows` under the name of the form; what the address of the page
    needs to say what is wrong where it was not saved."""
    return _store(words, rows, _given_name(request), query, **columns)


def rename(request: HttpRequest, words: Words, rows: QuerySet[Any], row: Any) -> dict[str, str]:
    """Give a row, one of `rows`, the name of the form; what the address of the page needs to say what is wrong where it
    was not renamed."""
    name = _given_name(request)
    wrong = _wrong_name(words, name)
    if not wrong:
        try:
            with transaction.atomic():
                rows.filter(pk=row.pk).update(name=name)
        except IntegrityError:
            wrong = _taken(words, name)
    return _refuse(f"The {words.one} was not renamed.", wrong, name, row.pk) if wrong else {}


def refusal(given: Mapping[str, str]) -> RefusedName | None:
    """What the parameters of an address say was refused; None where they say nothing that is ours."""
    try:
        return RefusedName(*signing.loads(given.get(REFUSED, ""), salt=REFUSED, max_age=UNDO_FOR))
    except signing.BadSignature:
        return None


def take_away(row: Any, page: str = "") -> str:
    """Delete a row; the text by which an address can bring it back, signed. `page`: the one it is of, where its kind
    has several."""
    plain_row = DeletedQuery(str(row.project_id), str(row.pk), row.name, row.query)
    text = signing.dumps(plain_row, salt=row._meta.label + page, compress=True)
    row.delete()
    return text


def taken_away(
    rows: QuerySet[Any], project: Project, text: str, page: str = "", within: timedelta = UNDO_FOR
) -> DeletedQuery | None:
    """What a text of `take_away` brings back to `rows` of a project; None where it is not ours, is older than `within`,
    of another project or page, or where a row has that name by now."""
    try:
        deleted = DeletedQuery(*signing.loads(text, salt=rows.model._meta.label + page, max_age=within))
    except signing.BadSignature:
        return None
    return deleted if deleted.project == str(project.pk) and not rows.filter(name=deleted.name).exists() else None


def offer(rows: QuerySet[Any], project: Project, request: HttpRequest, url: str, page: str = "") -> dict[str, str]:
    """The offer to bring back by `url` what the address of a page says was deleted; empty where there is none."""
    text = request.GET.get("undo", "")
    deleted = taken_away(rows, project, text, page) if text else None
    return {} if deleted is None else {"text": text, "name": deleted.name, "url": url}


def bring_back(words: Words, rows: QuerySet[Any], deleted: DeletedQuery, **columns: Any) -> dict[str, str]:
    """Add what was taken away to `rows` again; what the address of the page needs to say why not where it was not."""
    return _store(words, rows, deleted.name, deleted.query, pk=deleted.pk, **columns)


def _store(words: Words, rows: QuerySet[Any], name: str, query: str, **columns: Any) -> dict[str, str]:
    wrong = _wrong(words, name, query, rows.count())
    if not wrong:
        try:
            with transaction.atomic():
                rows.create(name=name, query=query, **columns)
        except IntegrityError:
            wrong = _taken(words, name)
    return _refuse(f"The {words.one} was not saved.", wrong, name) if wrong else {}


def _refuse(what: str, why: str, name: str, pk: object = "") -> dict[str, str]:
    known = RefusedName(name[: LONGEST_NAME + 1], f"{what} {why}", str(pk))
    return {REFUSED: signing.dumps(known, salt=REFUSED, compress=True)}


def _given_name(request: HttpRequest) -> str:
    return parameters.text(request.POST.get("name", ""))


def _taken(words: Words, name: str) -> str:
    known = f"There is a {words.one} with the name “{name}” already"
    return f"{known}: choose another name, or delete that {words.one} first."


def _wrong_name(words: Words, name: str) -> str:
    if not name or not name.isprintable():
        return f"A {words.one} needs a name, of characters that are displayed."
    if len(name) > LONGEST_NAME:
        return f"A name has at most {LONGEST_NAME} characters; this one has {len(name)}."
    return ""


def _wrong(words: Words, name: str, query: str, count: int) -> str:
    """Why a query is not saved: its name, its length, or that `count` are saved already."""
    if wrong := _wrong_name(words, name):
        return wrong
    if len(query) > LONGEST_QUERY:
        return f"What is to be saved has more than {LONGEST_QUERY:,} characters."
    return "" if count < MOST else f"{words.limit} at most {MOST} {words.all.lower()}: delete some first."
