"""Shares: making a report of a session as a job, its review, its publication under a token, and reading it."""
