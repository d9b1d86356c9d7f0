"""What was lost: instructions, paths and numbers of a session over all its requests."""
