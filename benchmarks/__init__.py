"""Benchmarks of speed and memory, each relative to a reference measured in the same run."""
