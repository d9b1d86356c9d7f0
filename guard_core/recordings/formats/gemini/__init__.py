"""Gemini CLI: chats, streams and results."""
