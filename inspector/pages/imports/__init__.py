"""An import while it runs, and its report."""
