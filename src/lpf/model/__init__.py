"""Encoder, decoder and aggregator: configs, networks in torch and in NumPy, models on disk."""
