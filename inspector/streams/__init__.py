"""Streams of running agents, in plain Python: which lines are new, repeated, in conflict or missing."""
