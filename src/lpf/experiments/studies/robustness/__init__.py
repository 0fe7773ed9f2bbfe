"""Evidence that gets worse."""
