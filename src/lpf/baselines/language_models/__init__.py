"""Language models behind any OpenAI-compatible endpoint, asked without training.

Asking sends evidence to the endpoint: the text leaves this machine unless the server runs on it.
Nothing is sent before ``ask`` or ``predict_proba`` is called. See docs/language-models.md.
"""

from lpf.baselines.language_models.asking import TokenCosts
from lpf.baselines.language_models.client import EndpointConfig, Prices
from lpf.baselines.language_models.method import (
    MODEL_PRESETS,
    LanguageModel,
    LanguageModelAnswers,
    ModelPreset,
    ZeroShot,
    sampled,
)
from lpf.baselines.language_models.prompting import Stated
from lpf.errors import LanguageModelError

__all__ = [
    "MODEL_PRESETS",
    "EndpointConfig",
    "LanguageModel",
    "LanguageModelAnswers",
    "LanguageModelError",
    "ModelPreset",
    "Prices",
    "Stated",
    "TokenCosts",
    "ZeroShot",
    "sampled",
]
