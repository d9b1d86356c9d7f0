"""This project's own export: its reader (`FORMAT`) and its writer."""

from guard_core.recordings.formats.native.format import FORMAT, write, write_all

__all__ = ["FORMAT", "write", "write_all"]
