"""A predicate added to a trained model: a new embedding and head on the trunk as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from lpf.errors import ConfigError
from lpf.model.config import ModelConfig, PredicateHead
from lpf.model.initialise import fresh_tensors
from lpf.types import Float32Array


def add_predicate(
    config: ModelConfig,
    tensors: Mapping[str, Float32Array],
    head: PredicateHead,
    seeds: Sequence[int],
) -> tuple[ModelConfig, dict[str, Float32Array]]:
    """The config and tensors with ``head`` beside the others, drawn from ``seeds`` (one a member)
    and still to be trained. Every tensor that was there is kept as it was."""
    if len(seeds) != config.members:
        raise ConfigError(f"seeds: the model has {config.members} members, got {len(seeds)} seeds.")
    extended = replace(config, predicates=(*config.predicates, head))
    drawn = fresh_tensors(extended, seeds)
    new = {name: array for name, array in drawn.items() if name not in tensors}
    return extended, {**tensors, **new}
