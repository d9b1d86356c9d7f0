"""A published report, for whoever has its address: no login, no script, nothing of the application around it."""
