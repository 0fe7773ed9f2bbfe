"""Studies: what is run on what, and what came out of it."""
