"""Is the server up and fit to work."""
