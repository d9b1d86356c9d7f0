"""From uploaded bytes to stored sessions."""
