"""Mistral Vibe: session stores and the logs before them."""
