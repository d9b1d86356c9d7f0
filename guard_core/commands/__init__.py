"""The commands of `python -m guard_core`, one module each."""
