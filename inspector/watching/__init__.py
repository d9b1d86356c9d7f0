"""`compaction-inspector watch`: sends recordings to a running server as they grow. A client: no Django, no database."""
