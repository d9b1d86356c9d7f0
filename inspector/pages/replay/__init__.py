"""Progress of a long replay."""
