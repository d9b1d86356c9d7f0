"""Uploading recordings, and downloading them again."""
