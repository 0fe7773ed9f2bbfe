"""Robust mode, one part taken out at a time."""
