"""Algorithm 1: from latent posteriors to factors."""

from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import context_key, item_keys
from lpf.factors.samplers import SAMPLERS
from lpf.factors.tempering import tempered

__all__ = [
    "SAMPLERS",
    "ConversionConfig",
    "Converter",
    "context_key",
    "item_keys",
    "tempered",
]
