"""Help: the glossary, the keys, the tour, and the list that goes anywhere."""
