"""Whether a session that is on the screen has grown."""
