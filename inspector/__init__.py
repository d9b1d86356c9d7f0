"""The web application around guard_core."""
