"""The weights of a module's best epoch, and when to stop waiting for a better one."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor

from lpf.errors import TrainingError


@dataclass
class BestEpoch:
    """Judged by the validation NLL. ``patience`` epochs without a better one are enough."""

    patience: int
    loss: float = np.inf
    epoch: int = 0
    weights: dict[str, Tensor] = field(default_factory=dict)

    def is_over(self, module: torch.nn.Module, loss: float, epoch: int) -> bool:
        """Takes note of an epoch, and says whether it was the last. TrainingError where the loss
        is not finite."""
        if not np.isfinite(loss):
            raise TrainingError(
                f"{type(module).__name__}: the validation loss is {loss} after epoch {epoch + 1}. "
                "Nothing was kept; look for features that are not finite, or a rate too high."
            )
        if loss < self.loss:
            self.loss, self.epoch = loss, epoch
            self.weights = {name: one.clone() for name, one in module.state_dict().items()}
        return epoch - self.epoch >= self.patience

    def restore(self, module: torch.nn.Module) -> None:
        """Gives the module its best weights back, ready to answer."""
        module.load_state_dict(self.weights)
        module.eval()
