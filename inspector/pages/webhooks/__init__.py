"""The addresses that hear of near misses, overflows and loops of a project."""
