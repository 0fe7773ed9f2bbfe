"""The paper's knobs, one at a time."""
