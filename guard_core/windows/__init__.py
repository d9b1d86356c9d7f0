"""The context window and the prices of a model, and what a recording proves about its window."""
