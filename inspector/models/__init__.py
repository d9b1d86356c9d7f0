"""What is stored: recordings (bytes), imports (jobs), sessions (numbers), their texts apart from them, and accounts."""

from inspector.models.accounts import Account, AccountRole, ApiKey, AuditRecord, Identity, Invitation, Membership, Spent
from inspector.models.comments import Comment
from inspector.models.estimates import Estimate, TextCount
from inspector.models.gallery import GalleryRun
from inspector.models.projects import Project, default_project
from inspector.models.recordings import Import, Recording
from inspector.models.rules import RuleExplanation, RuleSetting
from inspector.models.saved_views import Preset, SavedView
from inspector.models.sessions import Event, Payload, Session, SessionChunk, SessionData, SummaryText
from inspector.models.shares import Share, ShareRecord
from inspector.models.streams import PurgedStream, SpanBatch, SpanPlace, Stream, StreamBatch
from inspector.models.sweeps import Sweep, SweepSlice
from inspector.models.tags import Tag
from inspector.models.watching import WatchedPlace
from inspector.models.webhooks import Delivery, Webhook
from inspector.models.windows import ModelWindow

__all__ = [
    "Account",
    "AccountRole",
    "ApiKey",
    "AuditRecord",
    "Comment",
    "Delivery",
    "Estimate",
    "Event",
    "GalleryRun",
    "Identity",
    "Import",
    "Invitation",
    "Membership",
    "ModelWindow",
    "Payload",
    "Preset",
    "Project",
    "PurgedStream",
    "Recording",
    "RuleExplanation",
    "RuleSetting",
    "SavedView",
    "Session",
    "SessionChunk",
    "SessionData",
    "Share",
    "ShareRecord",
    "SpanBatch",
    "SpanPlace",
    "Spent",
    "Stream",
    "StreamBatch",
    "SummaryText",
    "Sweep",
    "SweepSlice",
    "Tag",
    "TextCount",
    "WatchedPlace",
    "Webhook",
    "default_project",
]
