"""Django's SQLite backend, where transactions that write get their turn."""
