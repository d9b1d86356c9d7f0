"""This project's own export: its reader (`FORMAT`), its writer, and the digest of a session."""

from guard_core.recordings.formats.native.format import FORMAT, NAME, VERSION, digest, write, write_all

__all__ = ["FORMAT", "NAME", "VERSION", "digest", "write", "write_all"]
