"""Logs of requests that a provider keeps for its customer, in its own words."""
