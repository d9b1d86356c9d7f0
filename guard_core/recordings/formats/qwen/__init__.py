"""Qwen Code: chats."""
