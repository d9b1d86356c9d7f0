"""Pieces that two policies or more are made of."""
