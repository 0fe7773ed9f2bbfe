"""How a model is trained: the paper's seeds and grid, and the options that may be changed.

Importing this module imports neither NumPy nor torch: the command line builds its options from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from lpf.errors import ConfigError
from lpf.model.config import AggregatorConfig
from lpf.options import LARGEST_SEED, Option, check_options, out_of_range

Balance = Literal["auto", "always", "never"]
ModelKind = Literal["best", "networks"]
Unfamiliar = Literal["less", "full"]

# Section 11.3 of the paper: seven seeds for most domains, fifteen for compliance.
SEVEN_SEEDS = (42, 123, 456, 789, 2024, 2025, 314159)
FIFTEEN_SEEDS = (
    42, 123, 456, 789, 1011, 2024, 2025, 3141, 9999, 12345, 54321, 11111, 77777, 99999, 314159,
)  # fmt: skip
SEED_PRESETS = {"seven": SEVEN_SEEDS, "fifteen": FIFTEEN_SEEDS}

# The grid in the paper's appendix on hyper-parameters.
LEARNING_RATES = (1e-4, 2e-4, 5e-4)
LATENT_WIDTHS = (32, 64, 128)
HIDDEN_WIDTHS = ((256, 128), (512, 256))

# Beyond this ratio between the largest and the smallest class, batches are drawn balanced.
UNEQUAL = 3.0


HOW = "How it is trained"

# Bounds that catch typing errors before hours of work; useful numbers are far inside.
WIDEST = 16_384
MOST_EPOCHS = 100_000
MOST_IN_BATCH = 1_000_000
MOST_SEEDS = 1000
MOST_LAYERS = 16
LONGEST_BUDGET = 10_000_000  # seconds
DEFAULT_BUDGET = 600.0  # seconds
LARGEST_RATE = 10
LARGEST_WEIGHT = 1000


@dataclass(frozen=True, kw_only=True)
class StageTwoConfig:
    """How the learned aggregator is trained. The paper trains 30 epochs with encoder and decoder
    frozen; ``patience=None`` does that."""

    epochs: Annotated[int, Option("Most epochs.", ge=1, le=MOST_EPOCHS)] = 30
    batch_size: Annotated[int, Option("Entities per batch.", ge=1, le=MOST_IN_BATCH)] = 32
    learning_rate: Annotated[float, Option("Learning rate.", gt=0, le=LARGEST_RATE)] = 1e-3
    weight_decay: Annotated[float, Option("Weight decay.", ge=0, le=LARGEST_WEIGHT)] = 1e-2
    patience: Annotated[
        int | None,
        Option("Epochs without improvement before training stops.", ge=1, le=MOST_EPOCHS),
    ] = 5
    unfreeze: Annotated[
        bool, Option("Train encoder and decoder further, together with the aggregator.", HOW)
    ] = False
    top_k: Annotated[int, Option("Items per entity.", ge=1, le=10**9)] = 10

    def __post_init__(self) -> None:
        check_options(self, "aggregator")


@dataclass(frozen=True, kw_only=True)
class TrainingConfig:
    """How a model is trained. Defaults are the paper's, except for patience (5 in the paper, which
    loses rare classes).

    With ``model="best"`` networks and a linear model are compared on validation entities and the
    better one becomes the model. If items have labels of their own, their relation to the entity's
    label is learned too (see ``linear`` and ``factors.label_channel``). ``model="networks"``
    follows the paper: always networks, and an item's label counts as its entity's.
    ``aggregator=None`` leaves out the second stage, ``unfamiliar="full"`` the fit that recognises
    texts unlike the training texts. Of ``budget`` seconds, those that are left after training on
    features of the untuned reader are used to tune it (``ladder``); with ``model="networks"``
    nothing is tuned.
    """

    hidden: Annotated[
        tuple[int, ...],
        Option("Widths of the encoder's hidden layers.", HOW, ge=1, le=WIDEST, metavar="N,N,..."),
    ] = (256, 128)
    latent_width: Annotated[
        int, Option("Width of the latent code.", HOW, ge=1, le=WIDEST, old_name="latent")
    ] = 64
    deterministic: Annotated[bool, Option("Train without the variational part.", HOW)] = False
    dropout: Annotated[float, Option("Dropout rate.", HOW, ge=0, lt=1)] = 0.2
    learning_rate: Annotated[float, Option("Learning rate.", HOW, gt=0, le=LARGEST_RATE)] = 1e-3
    batch_size: Annotated[int, Option("Items per batch.", HOW, ge=1, le=MOST_IN_BATCH)] = 64
    beta: Annotated[float, Option("Weight of the KL term.", HOW, ge=0, le=LARGEST_WEIGHT)] = 0.01
    patience: Annotated[
        int, Option("Epochs without improvement before training stops.", HOW, ge=1, le=MOST_EPOCHS)
    ] = 15
    max_epochs: Annotated[
        int, Option("Most epochs.", HOW, ge=1, le=MOST_EPOCHS, old_name="epochs")
    ] = 100
    weight_decay: Annotated[float, Option("Weight decay.", HOW, ge=0, le=LARGEST_WEIGHT)] = 0.0
    balance: Annotated[
        Balance,
        Option(
            "Draw all values equally often; auto: if one is 3 times as frequent as another.", HOW
        ),
    ] = "auto"
    members: Annotated[
        int, Option("Keep this many of the best seeds.", HOW, ge=1, le=MOST_SEEDS)
    ] = 5
    aggregator: AggregatorConfig | None = field(default_factory=AggregatorConfig)
    stage_two: StageTwoConfig = field(default_factory=StageTwoConfig)
    model: Annotated[
        ModelKind,
        Option(
            "The better of networks and a linear model (best), or always networks.",
            HOW,
            old_name="reading",
            old_values={"chosen": "best"},
        ),
    ] = "best"
    unfamiliar: Annotated[
        Unfamiliar,
        Option("How texts unlike the training texts count in robust mode: less, or full.", HOW),
    ] = "less"
    budget: Annotated[
        float,
        Option(
            "Time for training in all; what is left of it tunes the reader of claims. 0: no "
            "tuning.",
            HOW,
            ge=0,
            le=LONGEST_BUDGET,
            metavar="TIME",
            is_time=True,
        ),
    ] = DEFAULT_BUDGET

    def __post_init__(self) -> None:
        object.__setattr__(self, "hidden", tuple(self.hidden))
        check_options(self, "training")
        if len(self.hidden) > MOST_LAYERS:
            rule = f"at most {MOST_LAYERS} widths"
            raise out_of_range("training", "hidden", rule, len(self.hidden))

    @classmethod
    def paper(cls) -> TrainingConfig:
        """As published: patience 5, one seed, the aggregator of the implementation section,
        trained for 30 epochs without validation."""
        return cls(
            patience=5,
            balance="never",
            members=1,
            aggregator=AggregatorConfig.worked_example(),
            stage_two=StageTwoConfig(weight_decay=0.0, patience=None),
            model="networks",
            unfamiliar="full",
            budget=0.0,
        )

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def check_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """Raise ConfigError unless they are different whole numbers, at least 0, and at least one but
    not too many."""
    are_valid = all(isinstance(seed, int) and 0 <= seed <= LARGEST_SEED for seed in seeds)
    if not 1 <= len(seeds) <= MOST_SEEDS or not are_valid or len(set(seeds)) != len(seeds):
        shown = list(seeds[:10]) if are_valid else "another number"
        raise ConfigError(
            f"must be 1 to {MOST_SEEDS} different whole numbers from 0 to {LARGEST_SEED}; got "
            f"{shown}.",
            field="seeds",
        )
    return tuple(seeds)
