"""The data folder: who owns it, its upgrade, backups, and what killed processes left in it."""
