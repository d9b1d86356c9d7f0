"""Engine values made into the plain dicts and strings that templates show; no ORM, no request."""
