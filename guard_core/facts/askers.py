"""Who asked for something: the person at the keyboard, or an agent, the lead of a team or one that started another."""

from __future__ import annotations

from guard_core.events import Event, TextPart
from guard_core.sessions import Session

# The formats in which the `parent` of a session is the one whose agent started it. In others it may be the person's own
# session, of which this one is a branch, a continuation or another record.
STARTING = frozenset({"claude-code", "codex", "crush", "goose", "kimi-code", "opencode"})
_MAIL, _LEAD = "<teammate-message ", 'teammate_id="team-lead"'  # of a team of agents of Claude Code


def is_of_agent(session: Session, message: Event) -> bool:
    """Did an agent write a message in the user's name, and no person? `session` may be a head."""
    if session.parent and session.format in STARTING:
        return True
    first = next((part.text for part in message.parts if isinstance(part, TextPart)), "").lstrip()
    return first.startswith(_MAIL) and _LEAD in first
