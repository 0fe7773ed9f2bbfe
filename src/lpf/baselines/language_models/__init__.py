"""Language models behind any OpenAI-compatible endpoint, without training (zero-shot).

``ask`` and ``predict_proba`` send evidence to the endpoint: texts leave this machine unless the
server runs on it. Nothing is sent before. See docs/language-models.md.
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
