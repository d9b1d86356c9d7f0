"""Text search."""
