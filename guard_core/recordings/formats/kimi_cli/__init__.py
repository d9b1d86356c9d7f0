"""Kimi CLI: contexts and wires."""
