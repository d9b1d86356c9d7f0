"""The agents whose sessions grow on this server now, worst first."""
