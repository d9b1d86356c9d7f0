"""Sharing a session: what the report is to hold, its review, its publication, and the list of shares."""
