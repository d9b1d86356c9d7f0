"""Replays that take long: each in a process of its own, which replays a session and then makes its pages."""
