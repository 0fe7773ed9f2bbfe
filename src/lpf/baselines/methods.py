"""What methods are made from besides the data: trained models, so that no network trains twice."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from lpf.baselines.item_models import ItemModels
from lpf.baselines.transformer import TransformerConfig
from lpf.circuits import CompiledCircuit
from lpf.errors import ConfigError
from lpf.model.runtime import Runtime


@dataclass(frozen=True)
class Shared:
    """``model`` is the trained model that is compared, ``published`` one trained to the letter of
    the paper (``TrainingConfig.paper()``), ``circuit`` what is known before any evidence (the
    schema's priors without). ``items`` trains the deterministic classifier. ``checkpoint`` is the
    transformer to fine-tune (that of the default reader without), ``transformer`` its budget."""

    model: Runtime | None = None
    published: Runtime | None = None
    circuit: CompiledCircuit | None = None
    items: ItemModels = field(default_factory=ItemModels)
    checkpoint: str | Path | None = None
    transformer: TransformerConfig = field(default_factory=TransformerConfig)

    def trained(self, name: str) -> Runtime:
        """The model; ConfigError naming the method that needs it where there is none."""
        if self.model is None:
            raise ConfigError(
                f"{name}: needs a trained model, and none was given. It was not made; pass "
                "Shared(model=...), or leave the method out."
            )
        return self.model

    def trained_as_published(self, name: str) -> Runtime:
        """The same for the model trained to the letter."""
        if self.published is None:
            raise ConfigError(
                f"{name}: needs a model trained with TrainingConfig.paper(), and none was given. "
                "It was not made; pass Shared(published=...), or leave the method out."
            )
        return self.published
