"""The triggers page's parts: rows with their strips, change points, rules beside sessions, forced compactions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from django.urls import reverse

from guard_core.corpus import CheckPlace, RowKey, RuleTally, ThresholdChange, TriggerRow
from guard_core.corpus.rows import interval_of
from guard_core.corpus.words import cluster_words, day, evidence_words, formula_words, rule_words
from guard_core.findings.sizes import NEAR_MISS_SHARE
from guard_core.plural import place_of
from guard_core.rules.base import Moment, equation
from guard_core.rules.counters import COUNTED
from guard_core.rules.evidence import UNSAID, Cause, automatic
from guard_core.rules.explanation import UNNAMED
from guard_core.rules.inference import bound_words
from inspector.models import Project, Tag
from inspector.pages.shared.numbers import counted, moment, step_number
from inspector.pages.shared.paging import pager
from inspector.pages.shared.parts import in_order
from inspector.pages.triggers import figure
from inspector.pages.triggers.analysis import TriggersAnalysis, TriggersFilter, row_id
from inspector.pages.triggers.figure import Dot, Strip, Times

# Rows with a strip on one page, and lines of each of the other tables: a row has up to 60 elements, a line 30, and a
# page at most 2,000. The files have all.
ROWS, LISTED = 15, 8
TAGS = 100  # in the menu of the filter
NAMED = 4  # sessions of a group that are named one by one
DETAILED = 100  # compactions of a single row: with 240 linked dots the page has 1,900 elements
MARKS = {  # name in the style sheet, meaning
    Cause.AUTOMATIC: ("auto", "automatic"),
    Cause.UNSTATED: ("unstated", "trigger not recorded"),
    Cause.MANUAL: ("manual", "manual"),
    Cause.REFUSED: ("refused", "after a refused request"),
}


class Links:
    """Addresses of steps and sessions, with their titles."""

    def __init__(self, known: TriggersAnalysis) -> None:
        self._titles, self._calls = known.titles, known.corpus.calls

    def title(self, session: str) -> str:
        return in_order(self._titles.get(session, "")) or "untitled session"

    def step(self, session: str, step: int) -> str:
        """The page of a step; the last one for a check at the end."""
        last = max(self._calls.get(session, 1) - 1, 0)
        return f"{reverse('session_steps', args=[session])}?at={step_number(min(step, last))}"

    def step_words(self, session: str, step: int, before: str = "") -> str:
        """A step in words; a check that no call followed is one after the last step."""
        return place_of(step, self._calls.get(session, step + 1), before)

    def named(self, place: CheckPlace) -> str:
        """The session and the step of a check."""
        return f"{self.title(place.session)}, {self.step_words(place.session, place.step)}"

    def place(self, place: CheckPlace | None) -> dict[str, str] | None:
        """A check as its count, its step and its session."""
        if place is None:
            return None
        return {
            "tokens": f"{place.tokens:,}",
            "step": self.step_words(place.session, place.step),
            "url": self.step(place.session, place.step),
            "title": self.title(place.session),
        }

    def session(self, session: str) -> dict[str, str]:
        return {"title": self.title(session), "url": reverse("session_rule", args=[session])}


def context(project: Project, known: TriggersAnalysis, first: int = 0) -> dict[str, Any]:
    """What the page shows, with the rows from number `first` on (from 0)."""
    links, rows = Links(known), known.rows
    active = [row for row in rows if row.compactions]
    quiet = [row for row in rows if not row.compactions]
    forced = [row for row in rows if row.forced]
    pages = pager(len(active), first, ROWS, lambda row: f"{known.wanted.query(first=row)}#rows-title")
    shown = active[pages.shown]
    dots = dots_of(known)
    times = Times.of([dot.time for row in shown for dot in dots[row.key]])
    drawn = _Drawn(times, dots, known.changes.changes, max(1, len(shown)))
    return {
        "wanted": known.wanted,
        "query": known.wanted.query(),
        "filters": filters(project, known),
        "totals": totals(known),
        "headline": headline(known),
        "rows": [_row(row, known.wanted, links, drawn) for row in shown],
        "pager": pages,
        "quiet": [
            {**_names(row.key), "sessions": f"{len(row.sessions):,}", "above": links.place(row.above)}
            for row in quiet[:LISTED]
        ],
        "quiet_count": len(quiet),
        "more_quiet": max(0, len(quiet) - LISTED),
        "ticks": times.ticks if times else [],
        "marks": [{"kind": kind, "name": name} for kind, name in MARKS.values()],
        "changes": [_change(change, links) for change in reversed(known.changes.changes)][:LISTED],
        "more_changes": max(0, len(known.changes.changes) - LISTED),
        "inconsistent": [links.session(key) for key in known.changes.inconsistent[:LISTED]],
        **_rule_tables(rows, links),
        "forced": [_forced(row, links) for row in forced[:LISTED]],
        "more_forced": max(0, len(forced) - LISTED),
        "near": f"{NEAR_MISS_SHARE:.0%}".replace("%", "\u00a0%"),
        "single": _single(known, rows[0], links) if len(rows) == 1 else None,
        "pending": counted(known.corpus.pending, "session") if known.corpus.pending else "",
        "unnamed": any(len(row.sessions) > 1 and row.key.agent.startswith(UNNAMED) for row in shown),
        "undated": counted(known.changes.undated, "session") if known.changes.undated else "",
    }


def dots_of(known: TriggersAnalysis) -> dict[RowKey, list[Dot]]:
    """The compactions of each row that have a time and a count, the earliest first."""
    dots: defaultdict[RowKey, list[Dot]] = defaultdict(list)
    for item in known.stretches:
        dots[item.key] += [
            Dot(check.time, check.tokens, check.cause, item.session, check.step)
            for check in item.evidence.compactions
            if check.time is not None and check.tokens and check.cause in MARKS
        ]
    for of_row in dots.values():
        of_row.sort()
    return dots


class _Drawn:
    """What the strips of a page share."""

    def __init__(
        self, times: Times | None, dots: dict[RowKey, list[Dot]], changes: Sequence[ThresholdChange], rows: int
    ) -> None:
        self.times, self.dots, self.rows = times, dots, rows
        self._changes: defaultdict[RowKey, list[float]] = defaultdict(list)
        for change in changes:
            self._changes[change.key].append(change.time)

    def strip(self, row: TriggerRow) -> Strip | None:
        """The strip of a row; None where no compaction of the page has a time."""
        if self.times is None or not self.dots[row.key]:
            return None
        inside = [time for time in self._changes[row.key] if self.times.first <= time <= self.times.last]
        return figure.strip(row, self.dots[row.key], self.times, inside, self.rows)


def _strip(drawn: Strip | None, links: Links) -> dict[str, Any] | None:
    if drawn is None:
        return None
    return {
        "paths": [{"kind": MARKS[cause][0], "d": path} for cause, path in drawn.paths.items()],
        "links": [
            {
                "x": link.x,
                "y": link.y,
                "url": links.step(link.dot.session, link.dot.step),
                "title": f"{link.dot.tokens:,} tokens, {MARKS[link.dot.cause][1]}, {moment(link.dot.time)} UTC: "
                f"{links.title(link.dot.session)}, {links.step_words(link.dot.session, link.dot.step)}",
            }
            for link in drawn.links
        ],
        "band": drawn.band,
        "rule": drawn.rule,
        "formula": drawn.formula,
        "changes": drawn.changes,
        "top": drawn.top,
        "bottom": drawn.bottom,
        "words": drawn.words,
        "left": f"{drawn.shown:,} of {drawn.count:,} dots drawn" if drawn.shown < drawn.count else "",
    }


def _names(key: RowKey) -> dict[str, str]:
    return {
        "agent": key.agent,
        "version": key.version or "no version",
        "model": key.model or "model not recorded",
        "window": f"{key.window:,}" if key.window else "not known",
        "compares": COUNTED.get(key.counter, key.counter.replace("_", " + ")),
    }


def _row(row: TriggerRow, wanted: TriggersFilter, links: Links, drawn: _Drawn) -> dict[str, Any]:
    counts = row.compactions
    as_do = f"as {'does' if row.others == 1 else 'do'} {counted(row.others, 'other threshold')}"
    return {
        **_names(row.key),
        "id": row_id(row.key),
        "url": reverse("triggers") + wanted.query(row=row_id(row.key)),
        "sessions": f"{len(row.sessions):,}",
        "automatic": f"{automatic(counts):,}",
        "unstated": _unsaid(counts),
        "unproven": counts.get(Cause.UNPROVEN, 0) + counts.get(Cause.UNKNOWN, 0),
        "manual": f"{counts.get(Cause.MANUAL, 0):,}",
        "refused": counts.get(Cause.REFUSED, 0),
        "sliding": counts.get(Cause.SLIDING, 0),
        "left_out": row.left_out,
        "above": links.place(row.above),
        "at_most": links.place(row.at_most),
        "bounds": bound_words(row.key.relation),
        "unit": interval_of(row.key, row.above, row.at_most).other_unit,
        "contradiction": row.contradiction,
        "clusters": [cluster_words(row, item) for item in row.clusters[:NAMED]],
        "more_clusters": max(0, len(row.clusters) - NAMED),
        "formula": formula_words(row),
        "explained": f"{row.explained:,} of {row.fired:,}" if row.fired else "",
        "is_explained": row.formula is not None and row.explained == row.fired,
        "threshold": f"{row.formula.threshold:,}" if row.formula else "",
        "sum": equation(row.formula.threshold, row.formula.formula) if row.formula else "",
        "others": as_do if row.others else "",
        **_own_rule(row),
        "strip": _strip(drawn.strip(row), links),
    }


def _own_rule(row: TriggerRow) -> dict[str, Any]:
    """The agent's own rule with the compactions that agree; `is_own` where the formula is that rule."""
    rule = row.rules[0] if row.rules else None
    if rule is None or (row.formula is not None and row.formula.threshold == rule.threshold):
        return {"rule": "", "agrees": "", "is_own": rule is not None}
    says_when = rule.auto and (rule.threshold is not None or rule.checks is Moment.REFUSAL)
    agrees = _agreement(rule) if says_when else ""
    return {"rule": rule_words(rule), "agrees": agrees, "is_own": False}


def _agreement(rule: RuleTally) -> str:
    """How many compactions agree with a rule, of those that can be compared with it."""
    if not rule.comparable:
        return "no compaction can be compared"
    others = rule.auto - rule.comparable
    rest = f", {others:,} cannot be compared" if others else ""
    return f"agrees with {rule.agrees:,} of {rule.comparable:,}{rest}"


def _unsaid(counts: Mapping[Cause, int]) -> int:
    """The compactions of which the file does not say what triggered them."""
    return sum(counts.get(cause, 0) for cause in UNSAID)


def headline(known: TriggersAnalysis) -> str:
    """The page in a sentence or two."""
    rows = [row for row in known.rows if row.fired]
    if not rows:
        return "No session here has an automatic compaction with a count, so no threshold is bounded from above."
    explained, fired = sum(row.explained for row in rows), sum(row.fired for row in rows)
    unsaid = sum(row.compactions.get(Cause.UNSTATED, 0) for row in rows)
    noun = "compaction" if unsaid else "automatic compaction"
    words = f"Known formulas explain {explained:,} of {counted(fired, noun)} with a count."
    if unsaid:
        which = "it" if unsaid == fired == 1 else f"{unsaid:,} of them"
        words += f" What triggered {which}, the files do not say: taken as automatic."
    contradicting = sum(row.contradiction for row in rows)
    if contradicting:
        some = f"{contradicting:,} of {counted(len(rows), 'row')}"
        words += f" In {some} with such compactions, sessions contradict each other."
    if changes := len(known.changes.changes):
        words += f" {'A threshold' if changes == 1 else 'Thresholds'} changed at {counted(changes, 'point')} in time."
    return words


def totals(known: TriggersAnalysis) -> list[dict[str, str]]:
    """The sums over all rows."""
    rows = known.rows
    counts = {cause: sum(row.compactions.get(cause, 0) for row in rows) for cause in Cause}
    disobeying = {
        item.place.session for row in rows for tally in row.rules if tally.stated for item in tally.contradicts
    }
    values = (
        ("Sessions", len({session for row in rows for session in row.sessions}), "with model calls or compactions"),
        ("Automatic", automatic(counts), "as the files say"),
        ("Of unknown trigger", _unsaid(counts), "taken as automatic"),
        ("Manual", counts[Cause.MANUAL], "no evidence of a threshold"),
        ("After a refused request", counts[Cause.REFUSED], "whatever the threshold"),
        ("Change points", len(known.changes.changes), "later sessions contradict earlier ones"),
        ("Against a stated setting", len(disobeying), "that do not obey it"),
    )
    return [{"name": name, "value": f"{value:,}", "note": note} for name, value, note in values]


def filters(project: Project, known: TriggersAnalysis) -> dict[str, Any]:
    """The form: what may be chosen, and what is."""
    tags = Tag.objects.of(project).filter(sessions__deleted=None).values_list("name", flat=True).distinct()
    fields = (
        ("agent", "Agent", known.values("agent"), known.wanted.agent),
        ("model", "Model", known.values("model"), known.wanted.model),
        ("tag", "Tag", list(tags.order_by("name")[:TAGS]), known.wanted.tag),
    )
    menus = []
    for name, label, values, chosen in fields:  # what is chosen is offered though no session has it any more
        offered = sorted(dict.fromkeys([*([chosen] if chosen else []), *values]), key=str.casefold)
        options = [{"value": value, "on": value == chosen} for value in offered]
        menus.append({"name": name, "label": label, "options": options})
    return {"menus": menus}


def _change(change: ThresholdChange, links: Links) -> dict[str, Any]:
    before, after = (
        "no threshold" if value is None else f"{value:,}" for value in (change.rule_before, change.rule_after)
    )
    return {
        **_names(change.key),
        "day": day(change.time),
        "former_version": change.version or "no version",
        "same_version": change.version == change.key.version,
        "fell": change.fell,
        "before": links.place(change.before),
        "after": links.place(change.after),
        "former": _interval(change.key, change.former),
        "limits": _interval(change.key, change.limits),
        "sessions_before": counted(change.sessions_before, "session"),
        "sessions_after": counted(change.sessions_after, "session"),
        "rule": f"{before}, unchanged" if before == after else f"{before}, then {after}",
        "expected": change.expected,
    }


def _interval(key: RowKey, limits: tuple[int | None, int | None]) -> str:
    above, at_most = (None if value is None else CheckPlace(value, "", 0) for value in limits)
    return interval_of(key, above, at_most).words


def _rule_tables(rows: Sequence[TriggerRow], links: Links) -> dict[str, Any]:
    """The rules that sessions test: those with stated settings or with sessions that do not obey, then the others."""
    tested = [(row, tally) for row in rows for tally in row.rules if tally.stated or tally.obeys or tally.contradicts]
    notable = [pair for pair in tested if pair[1].stated or pair[1].contradicts]
    obeyed = [pair for pair in tested if not (pair[1].stated or pair[1].contradicts)]
    return {
        "rules": [{**_names(row.key), **_tally(tally, links)} for row, tally in notable[:LISTED]],
        "more_rules": max(0, len(notable) - LISTED),
        "obeyed": [{**_names(row.key), **_tally(tally, links)} for row, tally in obeyed[:LISTED]],
        "more_obeyed": max(0, len(obeyed) - LISTED),
        "obeyed_count": counted(len(obeyed), "row"),
    }


def _tally(tally: RuleTally, links: Links) -> dict[str, Any]:
    contradicting = {item.place.session for item in tally.contradicts}
    untested = tally.sessions - len(contradicting.union(tally.obeys))
    return {
        "words": rule_words(tally),
        "stated": [
            {"name": item.name.replace("_", " "), "value": f"{item.value:,g} {item.unit}", "source": str(item.source)}
            for item in tally.stated
        ],
        "sessions": f"{tally.sessions:,}",
        "obeys": f"{len(tally.obeys):,}",
        "obeying": [links.session(key) for key in tally.obeys[:NAMED]],
        "contradicts": f"{len(contradicting):,}",
        "contradicting": [
            {**(links.place(item.place) or {}), "fired": item.fired} for item in tally.contradicts[:NAMED]
        ],
        "more": max(0, len(tally.contradicts) - NAMED),
        "untested": f"{untested:,}",
        "agrees": f"{tally.agrees:,} of {tally.comparable:,}" if tally.comparable else "",
    }


def _forced(row: TriggerRow, links: Links) -> dict[str, Any]:
    refused = [item for item in row.forced if item.refused]
    near = [item for item in row.forced if not item.refused]
    return {
        **_names(row.key),
        "refused": f"{len(refused):,}",
        "near": f"{len(near):,}",
        "places": [{**(links.place(item.place) or {}), "refused": item.refused} for item in [*refused, *near][:NAMED]],
        "more": max(0, len(row.forced) - NAMED),
    }


def _single(known: TriggersAnalysis, row: TriggerRow, links: Links) -> dict[str, Any]:
    """More of a row that is alone on the page: each compaction, and what was compared."""
    checks = [(item.session, check) for item in known.stretches for check in item.evidence.compactions]
    checks.sort(key=lambda pair: (pair[1].time is None, pair[1].time or 0.0, pair[0], pair[1].step))
    return {
        "compares": _names(row.key)["compares"],
        "evidence": evidence_words(row, links.named),
        "count": counted(len(checks), "compaction"),
        "more": max(0, len(checks) - DETAILED),
        "compactions": [
            {
                "time": moment(check.time) or "not recorded",
                "tokens": "–" if check.tokens is None else f"{check.tokens:,}",
                "passed": f"{check.passed:,}" if check.passed else "–",
                "cause": str(check.cause),
                "step": links.step_words(session, check.step, "before "),
                "url": links.step(session, check.step),
                "title": links.title(session),
            }
            for session, check in checks[:DETAILED]
        ],
    }
