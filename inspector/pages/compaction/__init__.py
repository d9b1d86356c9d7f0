"""One compaction: what went in, what the summariser saw, what came out."""
