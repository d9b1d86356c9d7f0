"""What is stored: recordings (bytes), imports (jobs), sessions (numbers) and, apart from them, their texts."""

from inspector.models.recordings import Import, Recording
from inspector.models.sessions import Event, Payload, Session, SessionData

__all__ = ["Event", "Import", "Payload", "Recording", "Session", "SessionData"]
