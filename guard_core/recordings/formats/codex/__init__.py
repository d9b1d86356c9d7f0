"""Codex CLI: rollouts, and what `codex exec --json` prints."""
