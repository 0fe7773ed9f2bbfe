"""Latent Posterior Factors."""

from lpf.version import __version__

__all__ = ["__version__"]
