"""Encoder, decoder and aggregator: configs, the torch networks, artefacts and the lean runtime."""
