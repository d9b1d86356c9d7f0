"""Traces as observability services export them, each in its own words: read as spans of a trace."""
