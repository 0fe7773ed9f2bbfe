"""Data sets that nobody here generated."""
