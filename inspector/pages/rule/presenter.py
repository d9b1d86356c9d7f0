"""The rule page's parts: settings as a form, compactions and intervals as rows."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from guard_core.findings.words import steps_words
from guard_core.plural import place_of
from guard_core.rules import (
    Agent,
    Agreement,
    Explanation,
    Hypothesis,
    Interval,
    KeptMessages,
    KeptVerdict,
    OwnRule,
    RuleNumber,
    Stretch,
    settings_giving,
)
from guard_core.rules.base import equation
from guard_core.rules.counters import COUNTED
from guard_core.rules.settings import OF_MODEL, WINDOW
from guard_core.rules.words import agreement_words, reason_words
from inspector.pages.session.frame import Frame
from inspector.pages.shared.numbers import DASH, counted, grouped, step_number

PREFIX = "set."  # of the parameters in an address or a form that are settings of the rule
BEFORE, SAVED = "was.", "saved"  # of those that were remembered before, for an undo; present after a change
NONE = "none"  # in the place of a window before, where none was stated
LONGEST = 60  # characters of a typed value that are read, and of a setting's name
MODELS = 6  # whose windows have a field, of a session with several
NAMED = 5  # hypotheses of an interval that are listed
KEPT_BADGES = {
    KeptVerdict.AGREES: "badge-compaction",
    KeptVerdict.DIFFERS: "badge-tool",
    KeptVerdict.NOT_MODELLED: "badge-outline",
}
BADGES = {Agreement.AGREES: "badge-compaction", Agreement.NOT_MODELLED: "badge-outline"}


def typed(query: Mapping[str, str], prefix: str) -> dict[str, str]:
    """The settings of the rule in an address or a form, by their names."""
    texts = {name.removeprefix(prefix): value.strip() for name, value in query.items() if name.startswith(prefix)}
    return {name: value.replace("\x00", "\ufffd")[:LONGEST] for name, value in texts.items() if value}


def is_allowed(agent: Agent | None, name: str) -> bool:
    """Can a setting of this name be typed: one of the rule, the window, or that of one model."""
    return agent is not None and (name in agent.names or name.partition(OF_MODEL)[0] == WINDOW) and len(name) <= LONGEST


def stated(
    agent: Agent | None, values: Mapping[str, str], tried: Mapping[str, str], query: Mapping[str, str], window: str
) -> dict[str, Any]:
    """What is remembered of the rule's settings, what an undo brings back, and whether the page shows others. `window`:
    the one that a person stated, and for which sessions, in words."""
    if agent is None:
        return {}
    words = ", ".join(f"{label_of(name)} {grouped(value)}" for name, value in values.items())
    saved = SAVED in query
    before = {f"{PREFIX}{name}": value for name, value in typed(query, BEFORE).items() if is_allowed(agent, name)}
    if before.get(f"{PREFIX}{WINDOW}") == NONE:
        before[f"{PREFIX}{WINDOW}"] = ""
    done = f"Saved for all sessions of {agent.label} in this project: {words}." if values else ""
    if window and f"{BEFORE}{WINDOW}" in query:
        done = " ".join(filter(None, (done, f"Saved: window {window}.")))
    return {
        "agent": agent.label,
        "any": bool(values),
        "tried": bool(tried),
        "done": (done or f"No typed settings remain for {agent.label}.") if saved else "",
        "undo": [{"name": name, "value": value} for name, value in before.items()] if saved else [],
    }


def rule(own: OwnRule | None) -> dict[str, Any] | None:
    """The rule in words and its sum."""
    if own is None:
        return None
    return {
        "name": " ".join(filter(None, (own.agent, own.version))),
        "compares": COUNTED.get(own.counter, own.counter.replace("_", " + ")),
        "checks": str(own.checks),
        "relation": {">=": "reaches", ">": "exceeds"}[own.relation],
        "threshold": "" if own.threshold is None else f"{own.threshold:,}",
        "sum": own.formula if own.threshold is None else equation(own.threshold, own.formula),
        "reason": own.reason,
        "settings": [_setting(item) for item in own.settings],
    }


def _setting(item: RuleNumber) -> dict[str, str]:
    value = "not known"
    if item.value is not None:
        value = f"{int(item.value):,}" if float(item.value).is_integer() else f"{item.value:,g}"
    return {
        "name": label_of(item.name),
        "value": value,
        "unit": item.unit if item.value is not None else "",
        "source": str(item.source),
        "note": item.note,
    }


def form(
    agent: Agent | None, explanation: Explanation, values: Mapping[str, str], errors: Mapping[str, str], scope: str
) -> list[dict[str, Any]]:
    """A field for each setting that the file may lack, and for the window of each model where there are several.
    `scope`: for which sessions a window is saved."""
    if agent is None:
        return []
    known = {item.name: item for item in explanation.rule.settings} if explanation.rule else {}
    models = dict.fromkeys(stretch.model for stretch in explanation.stretches if stretch.model)
    of_models = [name for model in models if is_allowed(agent, name := f"{WINDOW}{OF_MODEL}{model}")]
    meanings = {WINDOW: f"of the model, in tokens; saved for {scope}", **agent.names}
    if len(models) > 1:
        meanings |= dict.fromkeys(of_models[:MODELS], "in tokens; replaces the one above")
    fields = []
    for name, meaning in meanings.items():
        setting = _setting(known[name]) if name in known else {"value": ""}
        fields.append(
            {
                "name": f"{PREFIX}{name}",
                "id": f"set-{name}",
                "label": label_of(name),
                "value": values.get(name, ""),
                "placeholder": setting["value"],
                "note": errors.get(name, meaning),
                "error": name in errors,
            }
        )
    return fields


def label_of(name: str) -> str:
    """What a setting of a rule is called on the page."""
    own, _, model = name.partition(OF_MODEL)
    words = "context window" if own == WINDOW else own.replace("_", " ")
    return f"{words} of {model}" if model else words


def with_label(words: str, name: str) -> str:
    """What is wrong with a setting, by the label of its field."""
    said = re.sub(rf"\b{re.escape(name)}\b", label_of(name), words, count=1, flags=re.IGNORECASE)
    return f"{said[:1].upper()}{said[1:]}"


def compactions(explanation: Explanation, page: Frame, shown: slice) -> list[dict[str, Any]]:
    """Recorded compactions beside the rule; `shown`: which of them."""
    rows = []
    for item in explanation.compactions[shown]:
        step = min(item.step, page.count - 1)
        rows.append(
            {
                "step": place_of(item.step, page.count, "before "),
                "url": page.paths["steps"] + page.choice.query(at=step_number(step)),
                "trigger": item.trigger,
                "count": "–" if item.decision_tokens is None else f"{item.decision_tokens:,}",
                "source": "recorder" if item.recorded is not None else "recomputed",
                "threshold": "–" if item.threshold is None else f"{item.threshold:,}",
                "verdict": str(item.verdict),
                "badge": BADGES.get(item.verdict, "badge-tool"),
                "reason": reason_words(item),
            }
        )
    return rows


def kept(explanation: Explanation, page: Frame, shown: slice) -> dict[str, Any]:
    """What each compaction left beside what the rule keeps; empty where there is none."""
    if not explanation.kept:
        return {}
    judged = [item for item in explanation.kept if item.verdict is not KeptVerdict.NOT_MODELLED]
    agrees = sum(item.verdict is KeptVerdict.AGREES for item in judged)
    return {
        "rules": list(dict.fromkeys(item.rule for item in explanation.kept if item.rule)),
        "agreement": f"{agrees:,} of {len(judged):,} as the rule says" if judged else "",
        "rows": [_kept_row(item, page) for item in explanation.kept[shown]],
    }


def _kept_row(item: KeptMessages, page: Frame) -> dict[str, str]:
    in_session = 0 <= item.step < page.count
    is_behind = any(one.at_the_end for one in page.compactions.compactions if one.place == item.place)
    without_call = "after the last step" if is_behind else "before another one"
    return {
        "step": place_of(item.step, page.count, "before ") if in_session else without_call,
        "url": page.paths["rule"] + page.choice.query(at=step_number(item.step)) + "#flow" if in_session else "",
        "messages": f"{item.messages:,}",
        "removed": f"{item.removed:,}",
        "kept": f"{item.kept:,}, ≈ {item.kept_tokens:,}" if item.kept else "0",
        "inserted": _inserted(item),
        "before": DASH if item.before is None else f"{item.before:,}",
        "after": DASH if item.after is None else f"{item.after:,}",
        "verdict": str(item.verdict),
        "badge": KEPT_BADGES[item.verdict],
        "reason": item.reason,
    }


def _inserted(item: KeptMessages) -> str:
    if not item.inserted:
        return "0"
    if not item.is_sealed:
        return f"{item.inserted:,}, ≈ {item.inserted_tokens:,}"
    return (
        f"{item.inserted:,}, ≥ {item.inserted_tokens:,}" if item.inserted_tokens else f"{item.inserted:,}, not readable"
    )


def missed(explanation: Explanation, page: Frame, shown: slice) -> dict[str, Any] | None:
    """The checks at which the rule fires and the agent did not compact."""
    if not explanation.missed:
        return None
    return {
        "count": counted(len(explanation.missed), "check"),
        "rows": [
            {
                "step": place_of(item.step, page.count, "before "),
                "url": page.paths["steps"] + page.choice.query(at=step_number(min(item.step, page.count - 1))),
                "count": f"{item.count:,}",
                "threshold": f"{item.threshold:,}",
            }
            for item in explanation.missed[shown]
        ],
    }


def intervals(
    explanation: Explanation, page: Frame, agent: Agent | None, typed: Mapping[str, str]
) -> list[dict[str, Any]]:
    """What the recording proves of the threshold, stretch by stretch and count by count; beside each formula that
    typed settings give, the address that tries these."""
    rule = explanation.rule
    return [
        _interval(
            item, page, agent, explanation.stretch_of(item) if rule and rule.counter == item.counter else None, typed
        )
        for item in explanation.inference
    ]


def _interval(
    item: Interval, page: Frame, agent: Agent | None, stretch: Stretch | None, typed: Mapping[str, str]
) -> dict[str, Any]:
    sentence = item.sentence
    listed = item.hypotheses[:NAMED]
    return {
        "place": steps_words(item.start, item.stop - 1),
        "model": "".join(f", {words}" for words in (item.version and f"version {item.version}", item.model) if words),
        "compares": COUNTED.get(item.counter, item.counter.replace("_", " + ")),
        "sentence": f"{sentence[:1].upper()}{sentence[1:]}.",
        "bounds": [
            {
                "text": place_of(step, page.count),
                "url": page.paths["steps"] + page.choice.query(at=step_number(min(step, page.count - 1))),
            }
            for step in (item.above_step, item.at_most_step)
            if step is not None
        ],
        "hypotheses": [
            {
                "sum": equation(hypothesis.threshold, hypothesis.formula),
                **_trying(agent, stretch, hypothesis, page, typed),
            }
            for hypothesis in listed
        ],
        "more": len(item.hypotheses) + item.more - len(listed),
        "none": not item.hypotheses and not item.contradiction and None not in (item.above, item.at_most),
    }


def _trying(
    agent: Agent | None, stretch: Stretch | None, hypothesis: Hypothesis, page: Frame, typed: Mapping[str, str]
) -> dict[str, str]:
    """The address that tries the settings which give a formula, and these in words; empty where none are known."""
    values = settings_giving(agent, stretch, hypothesis, typed) if agent is not None and stretch is not None else {}
    if not values:
        return {}
    query = page.choice.query(**{f"{PREFIX}{name}": value for name, value in {**typed, **values}.items()})
    words = ", ".join(f"{label_of(name)} {grouped(value)}" for name, value in values.items())
    return {"url": f"{page.paths['rule']}{query}#set-title", "words": words}


def agreement(explanation: Explanation) -> str:
    """How many compactions the rule explains, in words."""
    if explanation.rule is None or not explanation.auto:
        return ""
    return f"{agreement_words(explanation)} with the rule"
