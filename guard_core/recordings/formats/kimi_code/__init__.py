"""Kimi Code: wire logs."""
