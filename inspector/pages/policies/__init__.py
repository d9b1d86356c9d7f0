"""The listed policies: what each does, its settings, its known problems, and what it does with the bundled sessions."""
