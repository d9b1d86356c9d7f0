"""Plugins of pytest and the runner of the whole suite."""
