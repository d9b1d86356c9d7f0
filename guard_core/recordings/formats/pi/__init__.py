"""pi (pi-coding-agent): session files, and the events it prints."""
