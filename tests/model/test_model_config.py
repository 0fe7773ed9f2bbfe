from __future__ import annotations

from math import prod

import pytest

from builders import LEVELS, model_config, runtime
from lpf.errors import ConfigError, UnknownPredicateError
from lpf.model.config import (
    STANCE_LOGITS,
    AggregatorConfig,
    DecoderConfig,
    EncoderConfig,
    ModelConfig,
    PredicateHead,
)
from lpf.model.layout import tensor_shapes
from lpf.reading import STANCES


def test_the_paper_model_has_168867_parameters() -> None:
    """384-256-128-(64, 64) and [64; 32]-128-64-3: nowhere near the "50M" of the paper."""
    shapes = tensor_shapes(ModelConfig((PredicateHead("level", LEVELS),)))
    assert sum(prod(shape) for shape in shapes.values()) == 168_867


@pytest.mark.parametrize(
    ("aggregator", "quality", "consistency", "weight"),
    [
        (AggregatorConfig.section_4(), [129, 64, 32, 1], [256, 128, 64, 1], [2, 32, 1]),
        (AggregatorConfig.worked_example(), [128, 128, 64, 1], [128, 128, 64, 1], [2, 64, 32, 1]),
        (
            AggregatorConfig.implementation_details(),
            [128, 64, 32, 1],
            [128, 64, 32, 1],
            [2, 32, 16, 1],
        ),
    ],
)
def test_published_aggregator_shapes(
    aggregator: AggregatorConfig, quality: list, consistency: list, weight: list
) -> None:
    shapes = tensor_shapes(model_config(aggregator=aggregator))
    for network, widths in (("quality", quality), ("consistency", consistency), ("weight", weight)):
        layers = [shapes[f"aggregator.{network}.{i}.weight"] for i in range(len(widths) - 1)]
        assert [layers[0][1], *(layer[2] for layer in layers)] == widths


def test_config_survives_json() -> None:
    config = model_config(3, seeds=(1, 2, 3), calibration={"level": {"rho": 0.1}})
    assert ModelConfig.from_dict(config.to_dict()) == config
    assert "relevance_start" not in config.to_dict()["predicates"][0]
    first = model_config(predicates=(PredicateHead("level", LEVELS, relevance_start=0),))
    assert ModelConfig.from_dict(first.to_dict()) == first
    assert "occurrence_ratios" not in first.to_dict()["predicates"][0]
    ratios = ((1.0, 2.0, 0.5),) * 4
    head = PredicateHead("level", LEVELS, relevance_start=0, occurrence_ratios=ratios)
    with_ratios = model_config(predicates=(head,))
    assert ModelConfig.from_dict(with_ratios.to_dict()) == with_ratios


@pytest.mark.parametrize(
    ("build", "named"),
    [
        (lambda: EncoderConfig(hidden=(0,)), "encoder.hidden"),
        (lambda: EncoderConfig(dropout=1.0), "encoder.dropout"),
        (lambda: EncoderConfig(latent_width=-1), "encoder.latent_width"),
        (lambda: DecoderConfig(hidden=()), "decoder.hidden"),
        (lambda: AggregatorConfig(pair_input="sum"), "aggregator.pair_input"),
        (lambda: AggregatorConfig(normalisation="max"), "aggregator.normalisation"),
        (lambda: PredicateHead("p", ()), "'p'"),
        (lambda: PredicateHead("p", ("a", "b"), (1.0, 0.0)), "training_shares"),
        (lambda: PredicateHead("p", ("a", "b"), relevance_start=-1), "relevance_start"),
        (
            lambda: model_config(predicates=(PredicateHead("p", ("a",), relevance_start=382),)),
            "relevance_start",
        ),
        (
            lambda: PredicateHead("p", ("a",), occurrence_ratios=((1.0,),) * 4),
            "occurrence_ratios",
        ),
        (
            lambda: PredicateHead("p", ("a",), relevance_start=0, occurrence_ratios=((0.0,),) * 4),
            "occurrence_ratios",
        ),
        (lambda: ModelConfig(()), "predicates"),
        (lambda: model_config(0), "members"),
        (lambda: model_config(calibration={"other": {}}), "calibration"),
        (lambda: ModelConfig.from_dict({"predicates": [{"nome": "x"}]}), "model config"),
    ],
)
def test_a_wrong_setting_is_named(build: object, named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        build()


def test_an_unknown_predicate_lists_the_models_predicates() -> None:
    with pytest.raises(UnknownPredicateError, match="level"):
        runtime().decoder("nothing")


def test_there_are_as_many_stance_logits_as_stances() -> None:
    assert len(STANCES) == STANCE_LOGITS
