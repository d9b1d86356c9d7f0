"""What every policy would have done with a session."""
