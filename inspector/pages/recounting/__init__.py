"""A session whose columns an earlier version stored, while they are counted again."""
