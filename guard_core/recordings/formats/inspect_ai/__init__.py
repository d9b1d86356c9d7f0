"""Inspect (inspect_ai) evaluation logs."""
