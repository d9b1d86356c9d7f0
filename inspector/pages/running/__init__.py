"""The agents that stream into this server now, worst first."""
