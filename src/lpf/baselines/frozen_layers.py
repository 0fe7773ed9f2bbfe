"""A transformer cut in two: layers that stay as they were pretrained, and those to be trained."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor

from lpf.errors import ConfigError


class Whole(torch.nn.Module):
    """Token numbers and their mask [B, T] to states [B, T, width], through all of it."""

    def __init__(self, body: torch.nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, tokens: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = self.body(input_ids=tokens, attention_mask=mask).last_hidden_state
        return states


class Layers(torch.nn.Module):
    """Some layers of a transformer after another: states to states. ``embeddings`` makes states
    of token numbers first, where it is given."""

    def __init__(
        self, layers: Iterable[torch.nn.Module], embeddings: torch.nn.Module | None = None
    ) -> None:
        super().__init__()
        self.embeddings = embeddings
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        states: Tensor = inputs if self.embeddings is None else self.embeddings(input_ids=inputs)
        added = (1.0 - mask[:, None, None, :].to(states.dtype)) * torch.finfo(states.dtype).min
        for layer in self.layers:
            found = layer(states, attention_mask=added)
            states = found[0] if isinstance(found, tuple) else found  # a tuple before version 5
        return states


def split_layers(
    body: torch.nn.Module, trained: int | None
) -> tuple[Layers | None, torch.nn.Module]:
    """The part that stays, and the upper ``trained`` layers; nothing stays where that is None.

    ConfigError for a transformer that is not built as BERT is, whose layers cannot be told apart.
    """
    if trained is None:
        return None, Whole(body)
    embeddings = getattr(body, "embeddings", None)
    layers = getattr(getattr(body, "encoder", None), "layer", None)
    if embeddings is None or not isinstance(layers, torch.nn.ModuleList):
        raise ConfigError(
            f"trained_layers: {type(body).__name__} is not built as BERT is, so its layers cannot "
            "be trained in part. Nothing was trained; pass None to train all of it."
        )
    cut = max(0, len(layers) - trained)
    lower = Layers(layers[:cut], embeddings).requires_grad_(False)
    return lower.eval(), Layers(layers[cut:])
