"""Single answers, and where errors come from."""
