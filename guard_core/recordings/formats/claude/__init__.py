"""Claude Code: transcripts, and what runs of it print."""
