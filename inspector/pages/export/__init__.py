"""A session as a file in the project's own format."""
