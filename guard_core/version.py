"""The version of the engine, which traces and stored results name: it is raised where a result may change."""

__version__ = "0.4.0"
