"""Figures: engine values in, a plotly figure out; no ORM, no request, no settings."""
