"""The decision card of a recording by the rule of the agent that wrote it."""

from __future__ import annotations

from typing import Any

from guard_core.rules import OwnRule, RuleDecision
from guard_core.rules.words import decision_words, inequality
from inspector.pages.shared.card import fill_of, term_row

UNKNOWN_RULE = "The rule of this agent is not known"


def own_card(decision: RuleDecision, window: int) -> dict[str, Any]:
    """The card of one check. `window` is the session's, in tokens, for the bar."""
    rule = decision.rule
    threshold = -1 if rule is None or rule.threshold is None else rule.threshold
    count = -1 if decision.count is None else decision.count
    own_windows = [item.value for item in rule.settings if item.name == "window" and item.value] if rule else []
    own_window = int(own_windows[0]) if own_windows else 0  # what the rule rests on, in tokens
    return {
        "side": "own",
        "title": "The decision",
        "whose": UNKNOWN_RULE if rule is None else f"by the rule of {rule_name(rule)}",
        "inequality": inequality(decision),
        "verdict": decision_words(decision),
        "badge": "compacted" if decision.compaction is not None else "did not compact",
        "badge_class": "badge-compaction" if decision.compaction is not None else "",
        "terms": [term_row(term, decision.step) for term in decision.terms],
        "notes": list(_notes(decision)),
        **fill_of(count, threshold, own_window or window),
    }


def rule_name(rule: OwnRule) -> str:
    """Agent and version."""
    return " ".join(filter(None, (rule.agent, rule.version)))


def _notes(decision: RuleDecision) -> list[str]:
    notes = []
    if decision.recorded is not None and decision.computed not in (None, decision.recorded):
        apart = decision.recorded - (decision.computed or 0)
        notes.append(
            f"The agent wrote {decision.recorded:,}; the numbers of this file add up to {decision.computed:,}, "
            f"{abs(apart):,} {'fewer' if apart > 0 else 'more'}."
        )
    if decision.more:
        notes.append(f"{decision.more:,} more before this step: see the rule page.")
    return notes
