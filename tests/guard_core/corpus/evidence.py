"""Evidence of sessions, made in a line."""

from guard_core.corpus import SessionStretch
from guard_core.rules.base import Stretch
from guard_core.rules.evidence import Cause, CompactionCheck, StretchEvidence
from guard_core.rules.inference import CheckEvidence
from guard_core.rules.registry import AGENTS
from guard_core.sessions import Provenance, Sourced

AGENT = next(agent for agent in AGENTS if agent.label == "Claude Code")
DAY = 86_400.0


def fired(tokens, passed=0, cause=Cause.AUTOMATIC, step=5, time=None):
    """A compaction at a count."""
    return CompactionCheck(step, tokens, passed, cause, time)


def stretch(session, *compactions, passed=None, version="2.1.14", window=200_000, day=1.0, agent=AGENT, **typed):
    """The evidence of a session under a rule with typed settings; `passed`: its largest count without a compaction."""
    place = Stretch(0, 50, version, "claude-opus-4-5", Sourced(window, Provenance.RECORDER))
    rule = None if agent is None else agent.ruled(place, typed)
    return SessionStretch(
        session,
        f"title of {session}",
        None if day is None else day * DAY,
        StretchEvidence(
            agent="Claude Code" if agent else "Somebody",
            stretch=place,
            rule=rule,
            counter="prompt" if rule is None else rule.counter,
            relation=">=" if rule is None else rule.relation,
            passed=None if passed is None else CheckEvidence(9, passed),
            compactions=compactions,
            auto=sum(item.cause is not Cause.MANUAL for item in compactions),
            comparable=sum(item.cause is not Cause.MANUAL and item.tokens is not None for item in compactions),
            agrees=sum(
                item.cause in (Cause.AUTOMATIC, Cause.UNSTATED)
                and rule is not None
                and rule.fires(item.tokens)
                and not rule.fires(item.passed)
                for item in compactions
            ),
        ),
    )
