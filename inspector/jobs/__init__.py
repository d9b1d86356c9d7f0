"""Background jobs: the queue they wait in, and what each kind of them does."""
