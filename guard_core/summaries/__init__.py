"""Summaries: who makes them, how long they are, what a summariser is sent and what stands in when it fails."""
