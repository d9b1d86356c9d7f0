"""What every page of a session begins with: the session, the replay settings of the address, the strip and the tabs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any
from uuid import UUID

import numpy as np
from django.http import Http404, HttpRequest
from django.urls import reverse

from guard_core.decimation import Ints
from guard_core.errors import GuardError
from guard_core.findings import CompactionCounts
from guard_core.recordings import LABELS
from guard_core.rules import AGENTS
from inspector.models import Import, Session
from inspector.pages.session import family_links as families
from inspector.pages.session.family import SessionFamily, family_of
from inspector.pages.session.matches import matched_steps
from inspector.pages.session.strip import strip
from inspector.pages.session.zoom import PARAMETER, around, moves, words, zoom_of
from inspector.pages.shared import comments
from inspector.pages.shared.comments import CommentPlace
from inspector.pages.shared.lately import is_growing
from inspector.pages.shared.numbers import compaction_number, counted, step_index, step_number
from inspector.pages.shared.parts import in_order, visible
from inspector.pages.shared.project import project_of
from inspector.replays.analysis import Analysis, analyse
from inspector.replays.choice import NAMES, Choice, brief, parse_choice, sentence
from inspector.replays.own_policy import policy_of
from inspector.storage import explanations
from inspector.storage.query_words import Query, parse

SIDES = ("recorded", "replayed")
# Those that other pages of the session link to.
PAGES = ("overview", "steps", "context", "rule", "policies", "facts", "estimator", "share", "comments")
LONGEST_NUMBER = 10  # digits that are read as a number
MAX_NUMBER = 10**9  # a step or message number above this is a slip, not a place


@dataclass(frozen=True)
class Frame:
    """A request for a page of a session, read and checked."""

    request: HttpRequest
    row: Session
    choice: Choice
    errors: dict[str, str]
    analysis: Analysis
    side: str
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        return self.analysis.ledger.step_count

    @cached_property
    def reading(self) -> Import | None:
        """The newest import of its file."""
        return self.row.recording.imports.order_by("-created").first()

    @cached_property
    def compactions(self) -> CompactionCounts:
        """The recorded compactions that count; pages and their addresses number these."""
        return self.analysis.facts.counts

    @cached_property
    def comment_counts(self) -> Counter[CommentPlace]:
        """How many comments are at each place of the session."""
        return comments.counts(self.row)

    @cached_property
    def commented_steps(self) -> Counter[int]:
        """How many comments are at each step: its own, those of its compaction, and those of the parts that its
        request was the first to hold. Those of a compaction that no request followed are at none."""
        steps: Counter[int] = Counter()
        for place, count in self.comment_counts.items():
            step = self._step_of(place)
            if self.count and step >= 0:
                steps[min(step, self.count - 1)] += count
        return steps

    def _step_of(self, place: CommentPlace) -> int:
        """The step from 0, behind the last one for a part that no request held; -1: none."""
        if place.kind == comments.PART:
            return int(np.searchsorted(self.analysis.ledger.steps["at"], place.number, side="right"))
        if place.kind == comments.COMPACTION:
            known = self.compactions.compactions
            return known[min(place.number, len(known) - 1)].step if known else -1
        return place.number

    @cached_property
    def search(self) -> Query:
        """The text search whose matches the address asks to mark."""
        return parse(self.request.GET.get("search", ""))

    @cached_property
    def matched_steps(self) -> Ints:
        """The steps with matches of that search, ascending."""
        return self.steps_matching(self.search)

    def steps_matching(self, query: Query) -> Ints:
        """The steps with matches of a search, ascending."""
        compactions = [compaction.step for compaction in self.compactions.compactions]
        return matched_steps(self.row, query, self.analysis.ledger.steps["at"], compactions)

    @cached_property
    def family(self) -> SessionFamily:
        """The sessions that started this one and that it started."""
        return family_of(self.row)

    @cached_property
    def started_by_call(self) -> dict[str, dict[str, str]]:
        """The sessions that tool calls of this one started, by the id of the call."""
        agents = self.analysis.head.sub_agents
        return families.by_call(self.family, agents) if agents else {}

    @cached_property
    def links(self) -> dict[str, str]:
        """Addresses of this session's pages, with the replay settings kept."""
        query = self.choice.query()
        return {
            **{page: self.paths[page] + query for page in PAGES},
            "overview_path": self.paths["overview"],
            "steps_path": self.paths["steps"],
            "reset": self.paths["overview"],
            "report": "" if self.reading is None else f"{self.reading.get_absolute_url()}?report",
            "window": self.paths["window"],
        }

    def step_url(self, step: int, **more: Any) -> str:
        """The address of a step on the same side."""
        parameters = {"side": self.shown_side, "search": self.search.text, **more}
        return self.paths["steps"] + self.choice.query(at=step_number(step), **parameters)

    @property
    def shown_side(self) -> str:
        """The side as addresses carry it: the recorded one goes without saying, where there is a recording."""
        return "" if self.side == "recorded" and not self.analysis.simulated else self.side

    def compaction_url(self, index: int, side: str, **more: Any) -> str:
        """The address of a recorded compaction, or of one that the replay makes."""
        query = self.choice.query(side=side if side == "replayed" else "", **more)
        return reverse("compaction", args=[self.row.pk, compaction_number(index)]) + query

    def context(self, tab: str, at: int | None = None) -> dict[str, Any]:
        """What the frame's templates show."""
        return {
            "session": self.session(),
            "is_growing": partial(is_growing, self.row),  # called where a template asks
            "counts_characters": self.row.counts_characters,
            "urls": self.links,
            "tab": tab,
            **self.strip_row(at),
            "comment_count": sum(self.comment_counts.values()),
            "compaction_tabs": self._compaction_tabs(),
            "family": families.line(self.family, self.analysis.head, self.row.source_id),
            "settings_note": self.choice.words() if self.choice.changed else "",
            "not_used": list(map(brief, self.errors.values())),
        }

    @cached_property
    def zoom(self) -> range:
        """The steps that strip and chart show."""
        return zoom_of(self.request, self.count)

    def strip(self, at: int | None, matched: Ints) -> dict[str, Any]:
        """The strip with its marks; `at` is the step that is shown, `matched` are those with matches of a search."""
        return strip(self.analysis.data, at, self.side, sorted(self.commented_steps), matched, self.zoom)

    def strip_row(self, at: int | None) -> dict[str, Any]:
        """The strip of every page of a session, and the links that zoom it: to the same page, and without a script."""
        keys = [
            {**move, "url": "" if move["steps"] is None else self._zoomed(move["steps"])}
            for move in moves(self.zoom, self.count, at)
        ]
        return {
            "strip": {**self.strip(at, self.matched_steps), "moves": keys, "whole": self._zoomed(range(self.count))},
            "strip_url": reverse("session_strip", args=[self.row.pk]),
        }

    def zoom_around(self, at: int) -> dict[str, str]:
        """The parameter of an address that shows the steps around one of a long session."""
        return {PARAMETER: words(around(at, self.count), self.count)}

    def _zoomed(self, steps: range) -> str:
        query = self.request.GET.copy()
        query[PARAMETER] = words(steps, self.count)
        if not query[PARAMETER]:
            del query[PARAMETER]
        return f"?{query.urlencode()}"

    def session(self) -> dict[str, Any]:
        """Name and badges."""
        badges = [{"text": self.writer, "class": "badge-outline"}]
        if self.compactions.total:
            text = counted(self.compactions.total, "compaction")
            badges.append({"text": text, "class": "badge-compaction"})
        if overflows := self.analysis.facts.recording.overflows:
            badges.append({"text": counted(overflows, "overflow"), "class": "badge-overflow"})
        return {
            "title": in_order(self.row.title),
            "steps": f"{self.count:,}",
            "step_count": self.count,
            "badges": badges,
            "id": self.row.pk,
        }

    @property
    def format_label(self) -> str:
        """The recording's format as people call it."""
        return LABELS.get(self.row.format, self.row.format)

    @property
    def writer(self) -> str:
        """Who wrote the recording: of a format that several agents write the one that the file names, else the
        format."""
        is_known = any(agent.label == self.row.agent for agent in AGENTS)
        return self.row.agent if is_known else self.format_label

    def _compaction_tabs(self) -> list[dict[str, Any]]:
        tabs = []
        recorded = self.compactions.total
        count = len(self.analysis.replayed.compactions) if self.analysis.diverges else 0
        if recorded:
            tabs.append(self._compaction_tab("Compactions", "recorded", recorded))
        if count:
            tabs.append(self._compaction_tab("Replayed compactions", "replayed", count))
        return [{**item, "key": str(3 + number)} for number, item in enumerate(tabs)]

    def _compaction_tab(self, label: str, side: str, count: int) -> dict[str, Any]:
        return {"label": label, "tab": side, "count": count, "url": self.compaction_url(0, side)}


def frame(request: HttpRequest, session_id: UUID) -> Frame:
    """The session of an address under the settings of its query; Http404 where there is none."""
    query = {name: request.GET.get(name, "") for name in NAMES}
    return frame_of(request, session_id, query, request.GET.get("side", ""))


def frame_of(request: HttpRequest, session_id: UUID, query: Mapping[str, str], side: str) -> Frame:
    """A session under the settings of `query`, as the page of a request shows it; Http404 where there is none."""
    sessions = Session.objects.of(project_of(request)).select_related("recording")
    row = sessions.filter(pk=session_id, deleted=None).first()
    if row is None:
        raise Http404("There is no such session.")
    explanation, basis = explanations.in_use(row)
    own = policy_of(explanation.rule)
    choice, errors = parse_choice(query, own)
    try:
        analysis = analyse(row, choice, basis)
    except GuardError as error:
        choice, errors = Choice(own=own), {**errors, "": sentence(error)}
        analysis = analyse(row, choice, basis)
    default = "replayed" if analysis.simulated and analysis.diverges else "recorded"
    side = side if side in SIDES and (side == "recorded" or analysis.diverges) else default
    paths = {page: reverse(f"session_{page}", args=[row.pk]) for page in (*PAGES, "window", "avoid")}
    return Frame(request, row, choice, errors, analysis, side, paths)


def step_of(request: HttpRequest, name: str, count: int, default: int = 0) -> int:
    """The index of the step that an address names, counting from 1; the nearest of `count` where there is none."""
    return step_index(number(request, name, step_number(default), 1, max(1, count)))


def other_step_note(request: HttpRequest, at: int, count: int) -> str:
    """What to say where the address names a step that the session does not have, and step `at` is shown instead."""
    typed = request.GET.get("at", "").strip()
    if not typed or typed.lstrip("0") == str(step_number(at)):
        return ""
    place = ", the last" if step_number(at) == count > 1 else ", the first" if at == 0 else ""
    shown = f"showing step {step_number(at):,}{place}."
    if typed.isascii() and typed.isdigit() and len(typed) <= LONGEST_NUMBER:
        return f"There is no step {int(typed):,}; {shown}"
    return f"“{visible(typed[:20])}” is not the number of a step; {shown}"


def number(request: HttpRequest, name: str, default: int, low: int, high: int) -> int:
    """A whole number of the query string, kept within bounds; the default where it is none."""
    text = request.GET.get(name, "").strip()
    if not (text.isascii() and text.isdigit() and len(text) <= LONGEST_NUMBER):
        return max(low, min(default, high))
    return max(low, min(int(text), MAX_NUMBER, high))
