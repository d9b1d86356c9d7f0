"""The comments of a session: the list of all, those of one place, and what is done to them."""
