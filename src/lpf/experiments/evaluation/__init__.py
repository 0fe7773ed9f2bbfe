"""A file of labelled entities, evaluated with every method."""
