"""The folders of this machine that the server watches, in local mode."""
