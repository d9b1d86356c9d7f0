"""One folder per page: its views, what they show, its figures, its addresses."""
