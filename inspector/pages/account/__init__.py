"""Signing in and out, the page behind an invitation, and one's own account."""
