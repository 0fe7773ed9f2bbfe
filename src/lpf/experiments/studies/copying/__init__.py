"""Sources that copy each other."""
