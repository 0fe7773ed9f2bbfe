"""What is to be evaluated: which file, with which methods, how often."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from lpf.baselines import METHODS
from lpf.errors import ConfigError
from lpf.experiments.workbench.claim_only import CLAIM_ONLY
from lpf.experiments.workbench.own import is_own
from lpf.experiments.workbench.shared_models import CHOSEN

# Those that take a minute, not an hour, and no file lacks what they need.
DEFAULT_METHODS = (
    "lpf_robust",
    "lpf_chosen",
    "lpf_robust_single",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "spn_only",
    "logistic_mean",
    "confidence_vote",
    "majority_vote",
    "dawid_skene",
    "prior",
)


@dataclass(frozen=True)
class EvaluationPlan:
    """``seeds`` are repetitions: each draws its own networks. ``folds`` hold where the file does
    not say who is to be asked, or ``resplit`` forgets that it does. ``model`` is the transformer
    that is fine-tuned, a folder or a name on the hub; the default reader's without."""

    path: Path
    methods: tuple[str, ...] = DEFAULT_METHODS
    seeds: tuple[int, ...] = (1, 2, 3)
    folds: int = 5
    resplit: bool = False
    predicate: str | None = None
    protected: str | None = None
    model: str | None = None

    def __post_init__(self) -> None:
        known = (*METHODS, CHOSEN, CLAIM_ONLY)
        unknown = [name for name in self.methods if name not in known and not is_own(name)]
        if unknown or not self.methods:
            near = [name for one in unknown for name in get_close_matches(one, known, n=1)]
            meant = f"; did you mean {', '.join(near)}? All" if near else "; those"
            raise ConfigError(
                f"methods: {unknown or 'none'} given{meant} are {list(known)}, and your own as "
                "package.module:Name. Nothing was evaluated."
            )
        if not self.seeds or len(set(self.seeds)) != len(self.seeds):
            raise ConfigError(f"seeds: must be different numbers, got {list(self.seeds)}.")
        if self.folds < 2:
            raise ConfigError(f"folds: must be at least 2, got {self.folds}.")
        if self.model is not None and not self.model.strip():
            raise ConfigError("model: is empty; name a folder or a transformer on the hub.")
