"""Sending a running agent's session to an inspector while the agent works: `Client`."""

from guard_core.streaming.client import Client

__all__ = ["Client"]
