"""What a compaction did to instructions and open work, and what its summary names that nothing before it does."""

from __future__ import annotations

from typing import Any, NamedTuple

from guard_core.facts.across import (
    LAST_REQUEST,
    Crossing,
    Views,
    calls_without_result,
    crossings,
    last_requests,
    open_work,
)
from guard_core.facts.lanes import HELD, STATE_WORDS, UNSURE, Snippet, SnippetState
from guard_core.facts.proposals import MOST_DETAILS, named_in
from guard_core.facts.searchable import text_of
from guard_core.facts.texts import quotation, quotes
from guard_core.facts.todos import todo_events
from guard_core.quoting import readings
from inspector.pages.compaction import presenter
from inspector.pages.compaction.presenter import PageCompaction
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import counted
from inspector.pages.shared.parts import visible
from inspector.pages.shared.requests import REPEATED
from inspector.pages.shared.snippets import instructions_of, search_for
from inspector.storage import loading
from inspector.storage.snippets import occur_before

ROWS = 20  # of the table; the page of facts has all
QUOTED = 140  # characters of a text in it
NAMED = 12  # names of the summary that are listed
BADGES = {SnippetState.VERBATIM: "", SnippetState.GONE: "badge-overflow", **dict.fromkeys(UNSURE, "badge-outline")}


class FactChanges(NamedTuple):
    """What became of instructions and open work: all of them, those that are pointed out (made worse, or open), those
    that had left the context before, and those that are open."""

    rows: tuple[Crossing, ...]
    shown: list[Crossing]
    left: list[Snippet]
    open_now: tuple[Snippet, ...]


def changes_of(page: Frame, item: PageCompaction) -> FactChanges:
    """What a compaction did to instructions and open work."""
    ledger, requests = page.analysis.ledger, last_requests(page.analysis.ledger, item.at)
    wanted = [*todo_events(ledger, item.at).tolist(), *requests]
    open_now = open_work(loading.load_messages(page.row, wanted), item.at, requests)
    stated = (snippet for snippet in instructions_of(page.row, page.analysis) if snippet.event < item.at)
    said = [snippet for snippet in stated if not 0 <= snippet.withdrawn_by < item.at]
    search = search_for(page.row, page.analysis, item.side, (*open_now, *said))
    epoch = item.place if item.recorded else -1
    rows = crossings(search, Views(item.before, epoch - 1 if item.recorded else -1, item.sent, item.after, epoch))
    shown = [row for row in rows if row.is_worse or row.snippet in open_now]
    still_known = {row.snippet for row in rows}
    left = [snippet for snippet in search.snippets if snippet not in still_known]
    return FactChanges(rows, shown, left, open_now)


def facts_of(page: Frame, item: PageCompaction) -> dict[str, Any]:
    """The table of what changed for the worse and of open work, and sentences on the rest."""
    rows, shown, left, open_now = changes_of(page, item)
    unchanged = "It removed no instruction that the request before it had"
    nothing = f"{unchanged}." if open_now else f"{unchanged}, and no request or todo was open."
    unanswered = calls_without_result(page.analysis.ledger, item.at)
    return {
        "rows": [row_of(row) for row in shown[:ROWS]],
        "nothing": "" if shown else nothing,
        "has_given": bool(item.sent),
        "url": page.paths["facts"] + page.choice.query(side=page.shown_side),
        "sentences": [
            *_sentences(rows, shown),
            *_left_before(left, open_now),
            *([f"{counted(unanswered, 'tool call')} had no result yet."] if unanswered else []),
            *_unsupported(page, item),
        ],
    }


def row_of(row: Crossing) -> dict[str, Any]:
    """One text, what the request before, the summariser and the request after have of it."""
    text, given = row.snippet.text, ""
    if row.given is not None:  # whether the summariser had it: what it has never seen it could not keep
        given = "not known" if row.given in UNSURE else "yes" if row.given in HELD else "never seen"
    return {
        "kind": row.snippet.kind,
        "text": visible(text[:QUOTED]) + (" …" if len(text) > QUOTED else ""),
        "before": STATE_WORDS[row.before],
        "given": given,
        "after": STATE_WORDS[row.after],
        "badge": BADGES.get(row.after, "badge-compaction"),
    }


def _sentences(rows: tuple[Crossing, ...], shown: list[Crossing]) -> list[str]:
    """How many rows are left out, and what the others have that are no worse than before."""
    rest = [row for row in rows if row not in shown]
    held = {state: sum(row.after is state for row in rest) for state in SnippetState}
    summarised = held[SnippetState.QUOTED] + held[SnippetState.PARAPHRASED]
    sentences = [f"{len(shown) - ROWS:,} more are on the page of facts."] if len(shown) > ROWS else []
    if count := held[SnippetState.VERBATIM]:
        sentences.append(f"The words of {counted(count, 'other instruction')} are still there verbatim.")
    if summarised:
        verb = "is" if summarised == 1 else "are"
        sentences.append(f"{counted(summarised, 'other instruction')} {verb} only in a summary, as before.")
    if count := sum(held[state] for state in UNSURE):
        sentences.append(f"Of {counted(count, 'other instruction')} nothing is known, as before.")
    return sentences


def _left_before(left: list[Snippet], open_now: tuple[Snippet, ...]) -> list[str]:
    """What the request before the compaction did not have either."""
    requests = {snippet.event for snippet in left if snippet.kind == LAST_REQUEST}
    todos = sum(snippet in open_now for snippet in left) - len(requests)
    instructions = sum(snippet not in open_now and snippet.event not in requests for snippet in left)
    names = [
        counted(instructions, "instruction") if instructions else "",
        "the last request" if requests else "",
        counted(todos, "open todo") if todos else "",
    ]
    named = [name for name in names if name]
    words = " and ".join(filter(None, (", ".join(named[:-1]), *named[-1:])))
    return [f"{words[:1].upper()}{words[1:]} had left the context before."] if words else []


def _unsupported(page: Frame, item: PageCompaction) -> list[str]:
    """What the summary names that no message before it and no earlier summary has. Nothing where the conversation
    began before the file: what was said there is not known."""
    repeated = page.analysis.ledger.repeated[item.place] if item.recorded else frozenset()
    texts = [
        text["text"]
        for text in presenter.inserted_texts(item, page.analysis.attribution.prices, repeated)
        if text["kind"] not in (REPEATED, presenter.NOT_READABLE)
    ]
    named: dict[str, Snippet] = {}
    for text in texts:
        for snippet in named_in(text):
            if len(named) < 3 * MOST_DETAILS:
                named.setdefault(quotation(snippet.text), snippet)
    if not named:
        return []
    if item.recorded and not item.place and (not item.at or page.analysis.attribution.prologue):
        return ["The file lacks what came before it, so where the names in its summary come from is not known."]
    snippets, size = tuple(named.values()), int(page.analysis.ledger.events["bytes"].sum())
    occur = zip(snippets, occur_before(page.row, size, snippets, item.at), strict=True)
    followed = [(snippet, is_before) for snippet, is_before in occur if is_before is not None]
    earlier = _earlier(page, item) if not all(is_before for _, is_before in followed) else []
    missing = [
        visible(snippet.text[:60])
        for snippet, is_before in followed
        if not is_before and not any(quotes(text, quotation(snippet.text)) for text in earlier)
    ]
    if not missing:
        count = counted(len(followed), "path, identifier or quantity", "paths, identifiers and quantities")
        return [f"Its summary names {count}, none of them new."]
    more = f" and {len(missing) - NAMED:,} more" if len(missing) > NAMED else ""
    return [f"Named in its summary, but in no message before it: {', '.join(missing[:NAMED])}{more}."]


def _earlier(page: Frame, item: PageCompaction) -> list[str]:
    """The texts of earlier summaries and of the system prompt, in their readings."""
    head = page.analysis.head
    before = head.compactions[: item.place] if item.recorded else ()
    parts = [*(message.parts for each in before for message in each.messages), head.system or ()]
    return [readings(text_of(one)) for one in parts]
