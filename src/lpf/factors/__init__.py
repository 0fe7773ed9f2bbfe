"""Algorithm 1: from latent posteriors to factors."""

from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.distributions import tempered
from lpf.factors.keys import context_key, item_keys
from lpf.factors.samplers import SAMPLERS

__all__ = [
    "SAMPLERS",
    "ConversionConfig",
    "Converter",
    "context_key",
    "item_keys",
    "tempered",
]
