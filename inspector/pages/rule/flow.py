"""One check by the agent's own rule for a newcomer: seven stages, each with its numbers and where they come from."""

from __future__ import annotations

from typing import Any

from guard_core.rules import KeptMessages, Moment, OwnChecks, OwnRule, RuleDecision
from guard_core.rules.decisions import setting_label
from guard_core.rules.words import comparison, decision_words, inequality, threshold_words
from guard_core.sessions import Provenance
from guard_core.trace import Term
from inspector.figures.flow import drawing
from inspector.pages.session.frame import Frame, other_step_note, step_of
from inspector.pages.shared.card import term_row
from inspector.pages.shared.flow import fact, stage
from inspector.pages.shared.numbers import DASH, counted, percent, short, step_number, tokens

AGENT, RULE, MODEL = "agent", "rule", "model"
LANES = ((AGENT, "Agent"), (RULE, "Rule"), (MODEL, "Model"))
NODES = ("Last answer", "What came since", "Count", "Threshold", "Decide", "Compact", "Call the model")
LAST_ANSWER = ("prompt tokens of the last answer", "output tokens of it")
ADDED = "estimate of what was added since"
MESSAGES = "messages"


def flow(page: Frame, checks: OwnChecks) -> dict[str, Any] | None:
    """The flow of the check before the step of the address, else before the first compaction; None where the rule is
    not known or nothing was called."""
    explanation = checks.explanation
    if not explanation.rules or not page.count:
        return None
    steps = sorted({item.step for item in explanation.compactions if item.step < page.count})
    at = step_of(page.request, "at", page.count, steps[0] if steps else page.count - 1)
    decision = checks.at(at)
    item = decision.compaction
    left = None if item is None else next((left for left in explanation.kept if left.place == item.place), None)
    stages = [
        {"number": number, "node": node, **part}
        for number, (node, part) in enumerate(zip(NODES, _stages(page, checks, decision, left, at), strict=True), 1)
    ]
    return {
        "at": step_number(at),
        "count": page.count,
        "note": other_step_note(page.request, at, page.count),
        "sentence": decision_words(decision),
        "inequality": inequality(decision),
        "stages": stages,
        "drawing": drawing(stages, LANES),
        "label": f"{len(stages)} stages in three lanes: agent, rule, model",
        "bars": _bars(page, decision, at),
        "links": list(_links(page, steps, at)),
        "action": page.paths["rule"],
        "hidden": list(page.choice.pairs().items()),
        "step_url": page.step_url(at),
    }


def _stages(
    page: Frame, checks: OwnChecks, decision: RuleDecision, left: KeptMessages | None, at: int
) -> list[dict[str, Any]]:
    rule = decision.rule
    assert rule is not None
    terms = {term.name: term for term in decision.terms}
    return [
        _answered(terms, at),
        _added(terms, at),
        _counted(decision, terms, at),
        _threshold(rule, checks, terms, at),
        _decided(decision, rule),
        _compacted(decision, left),
        _called(page, at),
    ]


def _answered(terms: dict[str, Term], at: int) -> dict[str, Any]:
    """The first stage: the provider's count of the last answer, off where the check does not use it."""
    known = [terms[name] for name in LAST_ANSWER if name in terms]
    text = "With each answer the provider says how large the request was, and how long the answer is."
    total = f"{sum(int(term.value) for term in known):,}" if known else DASH
    return stage(MODEL, "The last answer was counted", total, text, *(term_row(t, at) for t in known), off=not known)


def _added(terms: dict[str, Term], at: int) -> dict[str, Any]:
    if "count" in terms and not terms.keys() & {*LAST_ANSWER, ADDED}:
        return stage(AGENT, "Its own count", "–", "This agent makes a count of its own, not a sum of parts.", off=True)
    if ADDED not in terms:
        text = "What was added to the conversation since is not part of this agent's count."
        return stage(AGENT, "What came since is not counted", "–", text, off=True)
    text = "Results of tools, and what else came since, have no count of the provider yet: the agent estimates them."
    term = terms[ADDED]
    return stage(AGENT, "What came since is estimated", f"+{int(term.value):,}", text, term_row(term, at))


def _counted(decision: RuleDecision, terms: dict[str, Term], at: int) -> dict[str, Any]:
    if "count" not in terms:
        text = f"There is nothing to compare: {decision.reason}."
        return stage(RULE, "No count", DASH, text, off=True)
    where = "The agent recorded this number itself." if decision.recorded is not None else ""
    if decision.recorded is not None and decision.computed not in (None, decision.recorded):
        where += f" The numbers of the file add up to {decision.computed:,}."
    text = f"The rule compares this number with the threshold. {where}".strip()
    return stage(RULE, "The count", tokens(decision.count), text, term_row(terms["count"], at))


def _threshold(rule: OwnRule, checks: OwnChecks, terms: dict[str, Term], at: int) -> dict[str, Any]:
    names = [setting_label(item.name) for item in rule.settings]
    facts = [term_row(terms[name], at) for name in (*names, "threshold") if name in terms]
    if rule.checks is Moment.REFUSAL and rule.window is not None:
        # Without a threshold the window is the limit.
        text = (
            f"The agent itself compares nothing: {rule.reason}. The provider compares the request with the window of "
            "the model, and refuses a larger one. The count is what the agent knows of that request, partly an "
            "estimate."
        )
        return stage(RULE, "No threshold, only the window", f"window {short(rule.window.value)}", text, *facts)
    if rule.threshold is None:
        words = threshold_words(rule)
        interval = checks.interval_at(at)
        proven = f" By its recording, {interval.sentence}." if interval is not None else ""
        text = f"{rule.reason[:1].upper()}{rule.reason[1:]}.{proven}"
        return stage(RULE, f"{words[:1].upper()}{words[1:]}", words.removeprefix("threshold "), text, *facts, off=True)
    text = f"Compared {rule.checks}. Settings that are not in the file have their defaults, or were typed in."
    return stage(RULE, "The threshold", tokens(rule.threshold), text, *facts)


def _decided(decision: RuleDecision, rule: OwnRule) -> dict[str, Any]:
    brief = comparison(decision)
    fires = decision.compaction is not None
    if rule.checks is Moment.REFUSAL and rule.window is not None and decision.count is not None:
        sign = ">" if decision.count > rule.window.value else "≤"
        compared = f"{sign} {short(rule.window.value)}"
        brief = f"{compared}: refused" if fires and sign == ">" else "refused" if fires else compared
    title = "It compacts" if fires else "It does not compact"
    return stage(RULE, title, brief, decision_words(decision))


def _compacted(decision: RuleDecision, left: KeptMessages | None) -> dict[str, Any]:
    if decision.compaction is None or left is None:
        text = "Only where the rule fires: a summary would take the place of the old messages. Not at this step."
        return stage(AGENT, "No compaction", "not here", text, off=True)
    facts = [
        fact(
            "summarised or dropped", left.removed, f"of {counted(left.messages, 'message')} sent before", unit=MESSAGES
        ),
        fact("kept as they were", left.kept, f"about {left.kept_tokens:,} tokens, bytes / 4", unit=MESSAGES),
        *([fact("shortened", left.rewritten, "kept in another form", unit=MESSAGES)] if left.rewritten else []),
        fact("inserted", left.inserted, _size_of(left), unit=MESSAGES),
    ]
    if left.said_after is not None:
        facts.append(fact("size after, by the agent", left.said_after, "", Provenance.RECORDER))
    text = f"The rule keeps {left.rule}." if left.rule else "What this agent keeps is not known here."
    words = f" This file: {left.verdict}{f' ({left.reason})' if left.reason else ''}." if left.rule else ""
    after = DASH if left.after is None else f"{left.after:,}"
    return stage(AGENT, "Compact", f"to {after}" if left.after else f"{left.removed:,} removed", text + words, *facts)


def _size_of(left: KeptMessages) -> str:
    """How large the inserted messages are, as far as the file shows it."""
    about = f"about {left.inserted_tokens:,} tokens, bytes / 4"
    if not left.is_sealed:
        return about
    return f"the summary is not readable; the rest {about}" if left.inserted_tokens else "not readable, size unknown"


def _called(page: Frame, at: int) -> dict[str, Any]:
    recorded = int(page.analysis.ledger.steps["prompt_tokens"][at])
    text = "The request goes out, with whatever the compaction left. Its count is where the next check begins."
    if recorded <= 0:
        return stage(MODEL, "Call the model", "not counted", text)
    window = int(page.analysis.facts.recording.windows[at])
    how = f"{percent(recorded, window, 1)} of the window" if window else ""
    return stage(
        MODEL, "Call the model", f"{recorded:,}", text, fact("prompt tokens", recorded, how, Provenance.PROVIDER)
    )


def _bars(page: Frame, decision: RuleDecision, at: int) -> list[dict[str, Any]]:
    """What was counted, in its parts, and the request that was sent, on one scale with threshold and window."""
    rule = decision.rule
    window = next((int(item.value) for item in rule.settings if item.name == "window" and item.value), 0) if rule else 0
    threshold = (rule.threshold if rule is not None else None) or 0
    sent = max(0, int(page.analysis.ledger.steps["prompt_tokens"][at]))
    kinds = dict(zip((*LAST_ANSWER, ADDED), ("provider", "calibrated", "gone"), strict=True))
    parts = [(kinds[term.name], int(term.value)) for term in decision.terms if term.name in kinds]
    count = decision.count or 0
    if not parts or sum(size for _, size in parts) != count:
        parts = [("provider", count)]
    scale = 1.02 * max(window, threshold, count, sent, 1)
    rows = (("what was counted before it", count, parts), ("the request of this step", sent, [("provider", sent)]))
    return [
        {
            "label": label,
            "value": tokens(value),
            "parts": [{"kind": kind, "width": f"{100 * size / scale:.2f}"} for kind, size in sizes if size > 0],
            "threshold": f"{100 * threshold / scale:.2f}" if threshold > 0 else "",
            "window": f"{100 * window / scale:.2f}" if window else "",
        }
        for label, value, sizes in rows
        if value > 0
    ]


def _links(page: Frame, steps: list[int], at: int) -> list[dict[str, str]]:
    """To the steps before and after, and to the compactions before and after."""
    before, after = [step for step in steps if step < at], [step for step in steps if step > at]
    places = (
        ("[", "‹ ▼", "previous compaction", before[-1] if before else None),
        ("k", "‹", "previous step", at - 1 if at else None),
        ("j", "›", "next step", at + 1 if at + 1 < page.count else None),
        ("]", "▼ ›", "next compaction", after[0] if after else None),
    )
    path = page.paths["rule"]
    return [
        {
            "key": key,
            "sign": sign,
            "title": title,
            "url": "" if step is None else path + page.choice.query(at=step_number(step)) + "#flow",
        }
        for key, sign, title, step in places
    ]
