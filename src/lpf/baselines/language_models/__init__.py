"""Language models behind any OpenAI-compatible endpoint, asked without training.

Asking sends evidence to the endpoint: the text leaves this machine unless the server runs on it.
Nothing is sent before ``ask`` or ``predict_proba`` is called. See docs/language-models.md.
"""

from lpf.baselines.language_models.answers import LanguageModelAnswers
from lpf.baselines.language_models.config import EndpointConfig, Prices
from lpf.baselines.language_models.costs import Costs
from lpf.baselines.language_models.method import LanguageModel, ZeroShot
from lpf.baselines.language_models.parsing import Stated
from lpf.baselines.language_models.presets import MODEL_PRESETS, ModelPreset
from lpf.baselines.language_models.sampling import sampled
from lpf.errors import LanguageModelError

__all__ = [
    "MODEL_PRESETS",
    "Costs",
    "EndpointConfig",
    "LanguageModel",
    "LanguageModelAnswers",
    "LanguageModelError",
    "ModelPreset",
    "Prices",
    "Stated",
    "ZeroShot",
    "sampled",
]
