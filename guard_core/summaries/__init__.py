"""Summaries: who makes them, how long they are, what a summariser is sent and what is used when it fails."""
