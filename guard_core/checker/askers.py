"""Whose a request or a rule is that left the context: the person's, or a task that an agent gave."""

from __future__ import annotations

import re

from guard_core.checker.story import ReplayStory, Story, Wrong, agree, number
from guard_core.events import TextPart
from guard_core.findings.claims import Finding, Verdict

_OF_ONE_MESSAGE = ("request_lost", "part_lost", "rule_lost", "earlier_rule_lost")
_STARTED = ("claude-code", "codex", "crush", "goose", "kimi-code", "opencode")  # their sessions' parents started them
_OF_PERSON = re.compile(r"\b(?:your|the user's) (?:earlier )?(?:request|rule)\b", re.IGNORECASE)
_OF_TASK = re.compile(r"\bthe (?:earlier )?task(?:'s rule)?\b", re.IGNORECASE)
_LEADS = re.compile(r"\s*<teammate-message [^>]*(?:>.*<teammate-message [^>]*)?teammate_id=\"team-lead\"", re.DOTALL)


def names_asker(story: Story, finding: Finding) -> None:
    """Raise Wrong where a claim says otherwise who asked for what it speaks of. Of a request that a replay loses none
    says it: its words are not looked up."""
    if finding.kind not in _OF_ONE_MESSAGE:
        return
    if isinstance(story, ReplayStory) and finding.kind == "request_lost":
        says_whose(finding)
        return
    texts = [part.text for part in story.session.events[number(finding, "message")].parts if isinstance(part, TextPart)]
    is_started = story.session.parent != "" and story.session.format in _STARTED
    agree(finding, of_agent=is_started or (bool(texts) and _LEADS.match(texts[0]) is not None))
    says_whose(finding)


def says_whose(claim: Finding | Verdict) -> None:
    """Raise Wrong where a sentence calls a task of an agent the person's own, or the reverse."""
    if claim.kind not in _OF_ONE_MESSAGE:
        return
    head, of_agent = claim.sentence.partition('"')[0], claim.numbers.get("of_agent")
    if (of_agent is True) != bool(_OF_TASK.search(head)) or (of_agent is False) != bool(_OF_PERSON.search(head)):
        raise Wrong("the sentence says otherwise who asked for it")
