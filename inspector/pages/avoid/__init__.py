"""What would have avoided the findings of a session."""
