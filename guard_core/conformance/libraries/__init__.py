"""Recorded runs of libraries (format policy-vector/1) against our policies, step by step."""

from __future__ import annotations

from guard_core.conformance.libraries.judge import CONVERSATIONS, CONVERSATIONS_FILE, FORMAT, check

__all__ = ["CONVERSATIONS", "CONVERSATIONS_FILE", "FORMAT", "check"]
