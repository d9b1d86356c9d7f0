"""What is stored: recordings (bytes), imports (jobs), sessions (numbers) and, apart from them, their texts."""

from inspector.models.estimates import Estimate, TextCount
from inspector.models.gallery import GalleryRun
from inspector.models.projects import Project, default_project
from inspector.models.recordings import Import, Recording
from inspector.models.rules import RuleExplanation, RuleSetting
from inspector.models.sessions import Event, Payload, Session, SessionChunk, SessionData, SummaryText
from inspector.models.tags import Tag
from inspector.models.windows import ModelWindow

__all__ = [
    "Estimate",
    "Event",
    "GalleryRun",
    "Import",
    "ModelWindow",
    "Payload",
    "Project",
    "Recording",
    "RuleExplanation",
    "RuleSetting",
    "Session",
    "SessionChunk",
    "SessionData",
    "SummaryText",
    "Tag",
    "TextCount",
    "default_project",
]
