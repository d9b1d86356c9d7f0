"""One step: where it is, what happened at it, and the decision before it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from django.urls import reverse

from guard_core.estimation.usage import PROVIDER
from guard_core.findings.gaps import clearing_words
from inspector.figures.timeline import NO_STEPS
from inspector.pages.session.frame import Frame, other_step_note
from inspector.pages.shared import card as cards
from inspector.pages.shared import parts
from inspector.pages.shared.numbers import ABOUT, counted, moment, percent, step_number, tokens, turn_number
from inspector.pages.shared.own_card import own_card
from inspector.pages.shared.simulator import step_query
from inspector.pages.steps import presenter
from inspector.pages.steps.addresses import kept, mark, marked
from inspector.pages.steps.listing import finding_steps
from inspector.pages.steps.messages import fixed_parts, messages
from inspector.replays.choice import policy_title

NAV = (
    (("Home", "⇤", "first step"), ("k", "‹", "previous step"), ("j", "›", "next step"), ("End", "⇥", "last step")),
    (("K", "‹ turn", "previous user turn"), ("J", "turn ›", "next user turn")),
    (("[", "‹ ▼", "previous compaction"), ("]", "▼ ›", "next compaction")),
    (("{", "‹ !", "previous finding"), ("}", "! ›", "next finding")),
)
SEARCH_NAV = (("N", "‹ ⌕", "previous step with a match"), ("n", "⌕ ›", "next step with a match"))
KEYS = {"j": "j ArrowDown", "k": "k ArrowUp"}


def one_step(page: Frame, at: int) -> dict[str, Any]:
    """What the templates show of a step: its place, marks, decision and messages."""
    analysis = page.analysis
    marks, side = finding_steps(page), page.shown_side
    near = presenter.neighbours(analysis.data, analysis.ledger, marks, at, side, page.matched_steps)
    nav = (*NAV, SEARCH_NAV) if page.search else NAV
    turn = int(analysis.ledger.steps["turn"][at])
    return {
        "count": page.count,
        "note": other_step_note(page.request, at, page.count),
        "turn_label": f"user turn {turn_number(turn):,} of {page.row.turns:,}" if turn >= 0 else "",
        "nav": [[_nav(page, near, item) for item in group] for group in nav],
        "search": _search(page, at),
        "bar": [_nav(page, near, item) for item in (NAV[2][0], NAV[0][1], NAV[0][2], NAV[2][1])],
        "ab": _marks(page, at),
        "hidden": [(name, value) for name, value in kept(page).items() if value],
        "marks": _badges(page, at),
        "facts_line": _facts_line(page, at),
        "sides": _sides(page, at),
        "cards": _cards(page, at),
        "settings_used": _settings_used(page),
        "share_url": _share_url(page, at),
        "what_if_url": page.links["overview_path"] + page.choice.query(**page.zoom_around(at)) + "#what-if",
        "fixed": fixed_parts(page),
        **messages(page, at),
    }


def _nav(page: Frame, near: dict[str, int | None], item: tuple[str, str, str]) -> dict[str, str]:
    key, sign, title = item
    step = near[key]
    url = "" if step is None else page.step_url(step, **marked(page))
    return {"key": KEYS.get(key, key), "sign": sign, "title": f"{title} ({key})", "url": url}


def _marks(page: Frame, at: int) -> dict[str, str]:
    """The links that mark this step as A, forget the mark, and compare A with this step."""
    here, a = str(step_number(at)), mark(page)
    links = {"mark": "" if a == here else page.step_url(at, **{**marked(page), "a": here}), "a": a}
    if a:
        path = reverse("session_difference", args=[page.row.pk])
        links["unmark"] = page.step_url(at, **{**marked(page), "a": ""})
        links["difference"] = path + page.choice.query(side=page.shown_side, a=a, b=here) if a != here else ""
    return links


def _search(page: Frame, at: int) -> dict[str, str]:
    """The search whose matches are marked: how many steps have some, its page, and the address without the marks."""
    if not page.search:
        return {}
    count = len(page.matched_steps)
    indexed = "" if page.row.indexed >= page.row.events else "; the session is still being indexed"
    return {
        "text": parts.visible(page.search.text),
        "count": (f"{counted(count, 'step')} with matches, marked on the strip" if count else "no matches") + indexed,
        "url": reverse("session_search", args=[page.row.pk]) + "?" + urlencode({"q": page.search.text}),
        "end": page.step_url(at, **{**marked(page), "search": ""}),
    }


def _badges(page: Frame, at: int) -> list[dict[str, str]]:
    """What happened at a step on the side that is shown, and after it, marked as such, on the other one."""
    data = page.analysis.data
    sides = {"recorded": (data.compactions, data.overflows, data.near_misses)}
    if data.replayed is not None and page.analysis.diverges:
        sides["replayed"] = (data.replayed.compactions, data.replayed.overflows, NO_STEPS)
    kinds = (("badge-compaction", "▼ compaction"), ("badge-overflow", "✕ overflow"), ("badge-overflow", "○ near miss"))
    return [
        {"badge": badge, "text": text}
        if side == page.side
        else {"badge": f"{badge} badge-outline", "text": f"{text}, {side}"}
        for side in sorted(sides, key=lambda name: name != page.side)
        for steps_marked, (badge, text) in zip(sides[side], kinds, strict=True)
        if at in steps_marked
    ]


def _facts_line(page: Frame, at: int) -> list[str]:
    call, columns = page.analysis.head.calls[at], page.analysis.ledger.steps
    recorded, cached = int(columns["prompt_tokens"][at]), int(columns["cached_tokens"][at])
    facts = [f"{recorded:,} prompt tokens (provider)"]
    if recorded <= 0:
        estimated = tokens(float(page.analysis.data.requests[at]))
        facts = [f"{ABOUT}{estimated} prompt tokens (estimated), no provider count"]
    trace = page.analysis.replayed.columns
    if page.side == "replayed" and int(trace["prompt_tokens_source"][at]) != PROVIDER:
        modelled = int(trace["modelled_prompt_tokens"][at])
        facts = [f"{modelled:,} prompt tokens (modelled)", f"recorded: {facts[0]}"]
    if cached > 0 and recorded > 0:
        facts[-1] += f", {percent(cached, recorded)} from cache"
    if call.output_tokens is not None:
        facts.append(f"{call.output_tokens:,} output tokens{', recorded' if page.side == 'replayed' else ''}")
    facts += [parts.visible(call.model[:60])] if call.model else []
    facts += [moment(call.timestamp)] if call.timestamp is not None else []
    facts += [f"line {call.line:,}"] if call.line is not None else []
    cleared = page.analysis.facts.clearings.get(at)
    facts += [clearing_words(cleared)] if cleared and page.side == "recorded" else []
    return facts


def _sides(page: Frame, at: int) -> list[dict[str, Any]]:
    """The switch between the recorded and the replayed request; none where they never differ."""
    if not page.analysis.diverges:
        return []
    words = ("without a policy", "under the policy") if page.analysis.simulated else ("as recorded", "as replayed")
    labels = tuple(zip(("recorded", "replayed"), words, strict=True))
    path, parameters = page.paths["steps"], {"at": step_number(at), **marked(page)}
    return [
        {"label": label, "url": path + page.choice.query(side=side, **parameters), "current": side == page.side}
        for side, label in labels
    ]


def _settings_used(page: Frame) -> dict[str, Any] | None:
    """The settings of the policy whose arithmetic is shown; None where that is the agent's own alone."""
    analysis = page.analysis
    if not analysis.data.shows_policy and page.side == "recorded":
        return None
    return cards.settings_used(analysis.trace(page.side), analysis.window, page.choice.engine_names())


def _cards(page: Frame, at: int) -> list[dict[str, Any]]:
    """The decision of the recording by its own rule, and a policy's where one is looked at."""
    analysis = page.analysis
    if analysis.facts.is_contextguards or page.side == "replayed":
        return [_card(page, at)]
    explained = page.paths["rule"] + page.choice.query(at=step_number(at))
    own = own_card(analysis.own_checks.at(at), analysis.facts.window.value)
    own |= {**_compaction_link(page, at), "explained": explained}
    if not analysis.data.shows_policy:
        return [own]
    policy = f"{policy_title(analysis.policy.name)} on the same request"
    return [own, {**_card(page, at), "title": policy, "link": ""}]


def _card(page: Frame, at: int) -> dict[str, Any]:
    analysis = page.analysis
    trace = analysis.trace(page.side)
    compacted = at in analysis.data.compactions
    places = [item.place for item in page.compactions.compactions if item.step == at]
    own = analysis.head.compactions[places[0]].tokens_before if compacted and places else None
    terms = cards.with_sources(analysis.policy.explain(trace, at), analysis.window, page.choice.engine_names())
    shown = cards.card(trace, at, terms, side=page.side, compacted=compacted, own=own)
    title = "The replay's decision" if page.side == "replayed" else "The decision"
    explained = ""
    if analysis.ledger.usage_ratio is not None:  # a simulated session: the page that explains its step to a newcomer
        query = step_query(page.row.title, page.choice.policy, page.choice.profile, at)
        explained = reverse("gallery_step") + query
    return {**shown, "title": title, **_compaction_link(page, at), "explained": explained}


def _share_url(page: Frame, at: int) -> str:
    """The form that shares the decision of this step: of the recording, or of the replay where that is looked at."""
    number = step_number(at)
    if page.side != "replayed":
        return f"{page.paths['share']}?scope=decision&step={number}"
    return page.paths["share"] + page.choice.query(policy=page.choice.kind.name, scope="decision", step=number)


def _compaction_link(page: Frame, at: int) -> dict[str, str]:
    analysis = page.analysis
    if page.side == "replayed":
        steps = [item.step for item in analysis.replayed.compactions]
        index = steps.index(at) if at in steps else None
    else:
        places = [item.step for item in page.compactions.compactions]
        index = places.index(at) if at in places else None
    if index is None:
        return {}
    return {"link": page.compaction_url(index, page.side), "link_label": "What this compaction did"}
