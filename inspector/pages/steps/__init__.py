"""The steps of a session, one model call at a time."""
