"""The paper's settings, all against each other."""
