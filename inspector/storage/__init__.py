"""What is stored of sessions: rows and engine values, texts, the text index, caches."""
