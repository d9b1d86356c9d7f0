"""Commands that Claude Code runs beside a session: a status line, and a hook that keeps what is about to be compacted.

They load neither Django nor the engine's arrays: an agent waits for them.
"""
