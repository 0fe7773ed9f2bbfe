"""The language models that the paper asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from lpf.baselines.language_models.config import EndpointConfig, Prices


@dataclass(frozen=True)
class ModelPreset:
    """What the paper says of a model: its name at Groq, and its price in dollars of January 2026.
    It gives no address, and endpoints may spell the name otherwise."""

    model: str
    prices: Prices

    def at(self, base_url: str, api_key_env: str | None = None) -> EndpointConfig:
        """``dataclasses.replace`` changes what else is to differ."""
        return EndpointConfig(base_url, self.model, api_key_env, prices=self.prices)


MODEL_PRESETS: Mapping[str, ModelPreset] = MappingProxyType(
    {
        preset.model: preset
        for preset in (
            ModelPreset("llama-3.3-70b-versatile", Prices(0.59, 0.79)),
            ModelPreset("qwen3-32b", Prices(0.18, 0.18)),
            ModelPreset("kimi-k2-instruct-0905", Prices(0.30, 0.30)),
            ModelPreset("gpt-oss-120b", Prices(0.80, 0.80)),
        )
    }
)
