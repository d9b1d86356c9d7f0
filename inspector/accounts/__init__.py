"""Accounts, and what each may do: signing in, invitations, access to every address, limits, the audit log."""
