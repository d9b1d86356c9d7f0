"""Redaction: keys, tokens, passwords, e-mail addresses, account names and phone numbers, found and replaced by stubs.

`kinds` says what is looked for, `finding` finds it in a text, `redactor` replaces it wherever it is.
"""

from guard_core.redaction.finding import Match, OwnPattern, find, own_patterns
from guard_core.redaction.redactor import RedactionEntry, Redactor
from guard_core.redaction.sessions import learn_session, redacted_report, redacted_session, redacted_tables

__all__ = [
    "Match",
    "OwnPattern",
    "RedactionEntry",
    "Redactor",
    "find",
    "learn_session",
    "own_patterns",
    "redacted_report",
    "redacted_session",
    "redacted_tables",
]
