"""What fills the context of a session at a step: by class, message and tool, and what changed before it."""
