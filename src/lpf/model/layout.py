"""Names and shapes of a model's tensors, derived from its config; and new tensors.

Training, stored models and the NumPy runtime all use these names. Every tensor of the networks has
a leading axis S of members; a weight is [S, in, out], a bias [S, out]. New weights are drawn as in
``torch.nn.Linear``, with one generator per member.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from lpf.errors import ConfigError
from lpf.model.config import HELD_OUT_COLUMNS, AggregatorConfig, ModelConfig, PredicateHead
from lpf.reading.fitted_words import LEXICAL_TENSORS, FittedWords
from lpf.reading.lexical import BUCKETS
from lpf.reading.pair import claim_part
from lpf.types import Float32Array

Shapes = dict[str, tuple[int, ...]]


# What the names of the tensors that all members share begin with.
FAMILIARITY, WORDS, CLAIM, HELD_OUT = "familiarity.", "words.", "claim.", "held_out."
SHARED = (FAMILIARITY, WORDS, CLAIM, HELD_OUT)


def tensor_shapes(config: ModelConfig) -> Shapes:
    """Every tensor of a model with this config."""
    return {
        **network_shapes(config),
        **_familiarity_shapes(config),
        **_words_shapes(config),
        **_claim_shapes(config),
        **_held_out_shapes(config),
    }


def network_shapes(config: ModelConfig) -> Shapes:
    """The tensors that each member has of its own."""
    shapes = {**_encoder_shapes(config), **_decoder_shapes(config)}
    if config.aggregator is not None:
        shapes |= _aggregator_shapes(config.aggregator, config)
    return shapes


def of_members(
    tensors: Mapping[str, Float32Array], places: list[int] | slice
) -> dict[str, Float32Array]:
    """The tensors of the members at ``places``, in this order; those that all share stay. A slice
    gives views."""
    return {
        name: array if name.startswith(SHARED) else array[places] for name, array in tensors.items()
    }


def stack_shapes(prefix: str, members: int, widths: tuple[int, ...]) -> Shapes:
    """Shapes of a multilayer perceptron with these widths, input first."""
    shapes: Shapes = {}
    for layer, (inputs, outputs) in enumerate(pairwise(widths)):
        shapes |= _linear(f"{prefix}.{layer}", members, inputs, outputs)
    return shapes


def stack_depth(prefix: str, names: Mapping[str, object]) -> int:
    """Number of layers that ``prefix`` has among ``names``."""
    depth = 0
    while f"{prefix}.{depth}.weight" in names:
        depth += 1
    return depth


def _linear(prefix: str, members: int, inputs: int, outputs: int) -> Shapes:
    return {
        f"{prefix}.weight": (members, inputs, outputs),
        f"{prefix}.bias": (members, outputs),
    }


def _encoder_shapes(config: ModelConfig) -> Shapes:
    encoder, members = config.encoder, config.members
    widths = (encoder.input_width, *encoder.hidden)
    shapes = stack_shapes("encoder.trunk", members, widths)
    shapes |= _linear("encoder.mu", members, widths[-1], encoder.latent_width)
    if not encoder.deterministic:
        shapes |= _linear("encoder.log_sigma", members, widths[-1], encoder.latent_width)
    return shapes


def _decoder_shapes(config: ModelConfig) -> Shapes:
    decoder, members = config.decoder, config.members
    inputs = config.encoder.latent_width + decoder.predicate_width
    shapes = stack_shapes("decoder.trunk", members, (inputs, *decoder.hidden))
    for head in config.predicates:
        shapes[f"decoder.embedding.{head.name}"] = (members, decoder.predicate_width)
        shapes |= _linear(
            f"decoder.head.{head.name}", members, decoder.hidden[-1], len(head.values)
        )
    return shapes


def _aggregator_shapes(aggregator: AggregatorConfig, config: ModelConfig) -> Shapes:
    latent, members = config.encoder.latent_width, config.members
    networks = {
        "quality": (aggregator.quality_width(latent), *aggregator.quality_hidden, 1),
        "consistency": (aggregator.pair_width(latent), *aggregator.consistency_hidden, 1),
        "weight": (2, *aggregator.weight_hidden, 1),
    }
    shapes: Shapes = {}
    for name, widths in networks.items():
        shapes |= stack_shapes(f"aggregator.{name}", members, widths)
    return shapes


def familiarity_prefix(predicate: str | None) -> str:
    """Begins the names of the tensors of a head's own familiarity; None: of the model's."""
    return FAMILIARITY if predicate is None else f"{FAMILIARITY}head.{predicate}."


def _familiarity_shapes(config: ModelConfig) -> Shapes:
    shapes: Shapes = {}
    for name, known in ((None, config.familiarity), *config.head_familiarity.items()):
        if known is not None:
            prefix, width = familiarity_prefix(name), known.stop - known.start
            shapes |= {f"{prefix}mean": (width,), f"{prefix}directions": (width, known.rank)}
    return shapes


def _words_shapes(config: ModelConfig) -> Shapes:
    shapes: Shapes = {}
    for name in config.words:
        values = len(config.head(name).values)
        shapes[f"{WORDS}{name}.idf"] = (BUCKETS,)
        shapes[f"{WORDS}{name}.weight"] = (BUCKETS, values)
        shapes[f"{WORDS}{name}.bias"] = (values,)
    return shapes


def _claim_shapes(config: ModelConfig) -> Shapes:
    shapes: Shapes = {}
    part = claim_part(config.reader_id, config.encoder.input_width)
    for name in config.claim_alone:
        if part is None:
            raise ConfigError(
                f"claim_alone: the reader {config.reader_id!r} does not read claims, so {name!r} "
                "cannot have a regression on them."
            )
        values = len(config.head(name).values)
        shapes[f"{CLAIM}{name}.weight"] = (part.stop, values)
        shapes[f"{CLAIM}{name}.bias"] = shapes[f"{CLAIM}{name}.log_shares"] = (values,)
    return shapes


def _held_out_shapes(config: ModelConfig) -> Shapes:
    return {
        f"{HELD_OUT}{name}": (one.entities, HELD_OUT_COLUMNS)
        for name, one in config.held_out.items()
    }


def words_tensors(words: FittedWords) -> dict[str, Float32Array]:
    """The regressions on words as tensors of a model."""
    return {
        f"{WORDS}{name}.{tensor}": np.asarray(getattr(one, tensor), np.float32)
        for name, one in words.models.items()
        for tensor in LEXICAL_TENSORS
    }


def fresh_tensors(config: ModelConfig, seeds: Sequence[int]) -> dict[str, Float32Array]:
    """Uniform in ±1/sqrt(inputs) for weights and biases, standard normal for embeddings.

    Member s depends on ``seeds[s]`` only, so a seed gives the same weights in any search.
    """
    shapes = network_shapes(config)
    members = [_one_member(shapes, np.random.default_rng(seed)) for seed in seeds]
    return {name: np.stack([member[name] for member in members]) for name in shapes}


def _one_member(
    shapes: dict[str, tuple[int, ...]], generator: np.random.Generator
) -> dict[str, Float32Array]:
    tensors: dict[str, Float32Array] = {}
    for name, shape in shapes.items():
        if name.startswith("decoder.embedding."):
            drawn = generator.standard_normal(shape[1:])
        else:
            inputs = shapes[name.removesuffix(".bias").removesuffix(".weight") + ".weight"][1]
            drawn = generator.uniform(-1.0, 1.0, shape[1:]) / np.sqrt(inputs)
        tensors[name] = drawn.astype(np.float32)
    return tensors


def add_predicate(
    config: ModelConfig,
    tensors: Mapping[str, Float32Array],
    head: PredicateHead,
    seeds: Sequence[int],
) -> tuple[ModelConfig, dict[str, Float32Array]]:
    """Config and tensors with an additional, untrained ``head``, drawn from ``seeds`` (one
    per member). The existing tensors do not change."""
    if len(seeds) != config.members:
        raise ConfigError(
            f"seeds: must be one per member, {config.members}; got {len(seeds)} seeds."
        )
    extended = replace(config, predicates=(*config.predicates, head))
    drawn = fresh_tensors(extended, seeds)
    new = {name: array for name, array in drawn.items() if name not in tensors}
    return extended, {**tensors, **new}
