"""The context window as a person states it."""
