"""Weights of lpf's stance reader, in the folder ``model`` with their card. There is no code here:
``lpf.reading.StanceReader`` locates the folder, compares the files with their hashes and runs the
network."""

__version__ = "0.1.0"
