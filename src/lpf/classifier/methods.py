"""The methods of ``lpf.baselines`` that lists of evidence are enough for: names and the making."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.classifier.entities import PREDICATE
from lpf.datasets import Dataset
from lpf.errors import ConfigError, DatasetError

if TYPE_CHECKING:
    from lpf.baselines import Method, TransformerConfig
    from lpf.training import Examples

OF_LPF = "lpf_"  # how names of LPF's own variants begin
OVER_TRUTH = ("perfect_reader", "oracle")
OVER_FACTORS = ("vae_only", "vae_only_ensemble")
OVER_FOLDS = ("stacking", "dawid_skene")
OVER_CHECKPOINT = "transformer"


@dataclass(frozen=True)
class Recipe:
    """A method by name, and what it is made with. As many classifiers of single items are tried as
    there are ``seeds``; a variational model starts from the seeds themselves. ``seed`` draws
    everything else."""

    name: str
    seeds: tuple[int, ...]
    seed: int
    checkpoint: str | Path | None
    transformer: TransformerConfig | None

    def __post_init__(self) -> None:
        _check_name(self.name)
        given = {"checkpoint": self.checkpoint, "transformer": self.transformer}
        for setting, value in given.items():
            if value is not None and self.name != OVER_CHECKPOINT:
                raise ConfigError(
                    f"{setting}: is for the method {OVER_CHECKPOINT!r} alone, and this is "
                    f"{self.name!r}. Nothing was trained; leave it out."
                )

    def require_enough(self, train: Dataset) -> None:
        """DatasetError where a method that learns from folds would have too few for them."""
        from lpf.baselines.item_models import FOLDS

        found = len({entity.group_id or entity.entity_id for entity in train})
        if self.name in OVER_FOLDS and found < FOLDS:
            raise DatasetError(
                f"X: {found} training entities of different groups, and {self.name!r} needs "
                f"{FOLDS}. Nothing was trained; label more, or choose another method."
            )

    def made(self, examples: Examples, reader_id: str) -> Method:
        """Ready to be fitted on ``examples``, which must be in splits."""
        from lpf.baselines import ItemModels, Shared, TransformerConfig, make_methods
        from lpf.training import Trainer, TrainingConfig

        model = None
        if self.name in OVER_FACTORS:
            config = TrainingConfig(aggregator=None, reading="networks")
            trainer = Trainer(examples, reader_id, (PREDICATE,), config, self.seeds)
            model = trainer.run().runtime()
        shared = Shared(
            model,
            items=ItemModels(searched=len(self.seeds)),
            checkpoint=self.checkpoint,
            transformer=self.transformer or TransformerConfig(),
        )
        return make_methods(shared, [self.name])[0]


def method_names() -> tuple[str, ...]:
    from lpf.baselines import METHODS

    return tuple(n for n in METHODS if not n.startswith(OF_LPF) and n not in OVER_TRUTH)


def _check_name(name: object) -> None:
    known = method_names()
    if name in known:
        return
    why = "is not known"
    if name in OVER_TRUTH:
        why = "needs the truth that generated data carry, which X does not"
    elif isinstance(name, str) and name.startswith(OF_LPF):
        why = "is not among them: LPF itself is LPFClassifier(variant=..., mode=...)"
    raise ConfigError(
        f"method: {name!r} {why}. Nothing was trained; the methods are {list(known)}."
    )
