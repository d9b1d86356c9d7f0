"""Simulated sessions: scenarios, the agent loop that plays them, and sample recordings."""
