"""The keys of the pages, as the list of shortcuts has them: each with what it does. `static/js/shortcuts.js` lets a
person use another key for it."""

from __future__ import annotations

from typing import NamedTuple


class Shortcuts(NamedTuple):
    """Keys that belong together. `keys`: each with what it does; `fixed`: keys that cannot be changed, with more to
    say."""

    keys: tuple[tuple[str, str], ...]
    more: str = ""
    fixed: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """What the keys do, in their order."""
        return "; ".join(text for text in (", ".join(words for _, words in self.keys), self.more) if text)


SHORTCUTS = (
    (
        Shortcuts(
            (("j", "next step"), ("k", "previous step")),
            "also ↓ ↑; on the page of a compaction the messages of its table, which Enter opens",
        ),
        Shortcuts((("J", "next user turn"), ("K", "previous user turn"))),
        Shortcuts((("]", "next compaction"), ("[", "previous compaction"))),
        Shortcuts((("}", "next finding"), ("{", "previous finding"))),
        Shortcuts((), "first step, last step", ("Home", "End")),
        Shortcuts((("Space", "play the steps, stop"),)),
        Shortcuts((("m", "mark the step as A"), ("d", "difference of A and this step"))),
        Shortcuts((("g", "go to a step by number"),)),
        Shortcuts(
            (("W", "zoom in"), ("S", "zoom out"), ("A", "earlier steps"), ("D", "later steps")),
            "the strip and the chart of the overview; also the wheel, or a drag, over the strip",
        ),
    ),
    (
        Shortcuts(
            (
                ("1", "overview"),
                ("2", "steps"),
                ("3", "compactions"),
                ("4", "replayed compactions"),
                ("5", "context"),
                ("6", "rule"),
                ("7", "policies"),
                ("8", "facts"),
                ("9", "estimator"),
            )
        ),
        Shortcuts((("c", "context of the step"), ("w", "what-if"), ("s", "share"))),
        Shortcuts(
            (("r", "read the first part of a message"), ("e", "show more of the first cut text")),
            "on the page of a compaction the message that has the focus, or the first",
        ),
        Shortcuts((("/", "search the session, or all sessions"),)),
        Shortcuts((("n", "next match of a search"), ("N", "previous match"))),
        Shortcuts((("f", "filter the list of the page"),), "of steps and of a compaction the next filter"),
        Shortcuts((), "in a chart: next, previous point; Enter opens its step", ("→", "←")),
        Shortcuts((), "go to a page, a session, a step or a policy; also ⌘+K", ("Ctrl+K",)),
        Shortcuts((("?", "this list"),)),
        Shortcuts((), "close, or back to the session", ("Esc",)),
    ),
)
