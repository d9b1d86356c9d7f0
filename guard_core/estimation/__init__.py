"""How many prompt tokens the provider counts for a request: fitted to the recorded counts, forecast, and measured."""
