"""Whose a request or a rule is that left the context: the person's, or a task that an agent gave."""

from __future__ import annotations

import re

from guard_core.checker.story import Story, Wrong, agree, number
from guard_core.events import TextPart
from guard_core.findings.claims import Finding, Verdict

_OF_ONE_MESSAGE = ("request_lost", "part_lost", "rule_lost", "earlier_rule_lost")
_STARTED = ("claude-code", "codex", "crush", "goose", "kimi-code", "opencode")  # their sessions' parents started them
_OF_PERSON = re.compile(r"\b(?:your|the user's) (?:earlier )?(?:request|rule)\b", re.IGNORECASE)
_OF_TASK = re.compile(r"\bthe (?:earlier )?task(?:'s rule)?\b", re.IGNORECASE)
_LEADS = re.compile(r"\s*<teammate-message [^>]*(?:>.*<teammate-message [^>]*)?teammate_id=\"team-lead\"", re.DOTALL)


def names_asker(story: Story, finding: Finding) -> None:
    """Raise Wrong where a claim says otherwise who asked for what it speaks of."""
    if finding.kind not in _OF_ONE_MESSAGE:
        return
    texts = [part.text for part in story.session.events[number(finding, "message")].parts if isinstance(part, TextPart)]
    is_started = story.session.parent != "" and story.session.format in _STARTED
    agree(finding, of_agent=is_started or (bool(texts) and _LEADS.match(texts[0]) is not None))
    says_whose(finding)


def says_whose(claim: Finding | Verdict) -> None:
    """Raise Wrong where a sentence calls a task of an agent the person's own, or the reverse."""
    if claim.kind not in _OF_ONE_MESSAGE:
        return
    head = claim.sentence.partition('"')[0]
    expected, other = (_OF_TASK, _OF_PERSON) if number(claim, "of_agent") else (_OF_PERSON, _OF_TASK)
    if not expected.search(head) or other.search(head):
        raise Wrong("the sentence says otherwise who asked for it")
