"""A project as its owners see it: members, invitations, keys, the audit log."""
