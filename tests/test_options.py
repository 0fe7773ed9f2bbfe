"""Options are declared once: what is checked, and that every place has the same names."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal, get_args

import pytest

from lpf.classifier import LPFClassifier
from lpf.combine import paper
from lpf.errors import ConfigError
from lpf.factors.samplers import DETERMINISTIC, SAMPLERS
from lpf.options import (
    DRAWS_NOTHING,
    Option,
    QueryOptions,
    Sampler,
    WeightForm,
    check_options,
    options_of,
    parse_time,
    shown_time,
)
from lpf.training.config import StageTwoConfig, TrainingConfig

# Options of a question that a classifier has no use for, or has under scikit-learn's name.
NOT_IN_CLASSIFIER = {
    *("top_k", "min_credibility", "query_text", "as_of", "fallback"),
    *("seed", "uncertainty_samples", "related_evidence"),
    *("coverage", "coverage_by_value", "max_risk"),  # arguments of its methods
}


@dataclass(frozen=True)
class Sample:
    count: Annotated[int, Option("How many.", ge=1)] = 2
    share: Annotated[float | None, Option("Which share.", gt=0, le=1, unset="all")] = None
    way: Annotated[Literal["up", "down"], Option("Which way.")] = "up"
    other: str = "no option"

    def __post_init__(self) -> None:
        check_options(self, "sample")


def test_an_option_knows_its_name_type_choices_and_default() -> None:
    declared = options_of(Sample)
    assert list(declared) == ["count", "share", "way"]
    assert (declared["count"].kind, declared["share"].kind, declared["way"].kind) == (
        int,
        float,
        str,
    )
    assert declared["way"].choices == ("up", "down")
    assert (declared["count"].default_text, declared["share"].default_text) == ("2", "all")
    assert declared["count"].flag == "--count"


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"count": 0}, "at least 1"),
        ({"share": 0.0}, "in (0, 1]"),
        ({"share": 1.5}, "in (0, 1]"),
        ({"share": math.nan}, "in (0, 1]"),
        ({"way": "left"}, "one of ('up', 'down')"),
    ],
)
def test_a_wrong_value_is_refused_with_its_field(wrong: dict[str, Any], rule: str) -> None:
    (name,) = wrong
    with pytest.raises(ConfigError) as caught:
        Sample(**wrong)
    assert caught.value.field == f"sample.{name}"
    assert rule in caught.value.message


@pytest.mark.parametrize("kind", [QueryOptions, TrainingConfig])
def test_a_classifier_has_the_same_parameters_with_the_same_defaults(kind: type) -> None:
    parameters = {field.name: field.default for field in fields(LPFClassifier) if field.init}
    for name, declared in options_of(kind).items():
        if name not in NOT_IN_CLASSIFIER:
            assert parameters[name] == declared.default, name


def test_every_field_of_the_options_is_declared() -> None:
    for kind in (QueryOptions, StageTwoConfig):
        assert set(options_of(kind)) == {field.name for field in fields(kind)}
    undeclared = {field.name for field in fields(TrainingConfig)} - set(options_of(TrainingConfig))
    assert undeclared == {"aggregator", "stage_two"}


def test_choices_are_those_of_the_algorithms() -> None:
    assert set(get_args(Sampler)) == {*SAMPLERS, *DETERMINISTIC}
    assert DRAWS_NOTHING == DETERMINISTIC
    assert get_args(WeightForm) == get_args(paper.WeightForm)


def test_earlier_names_do_not_clash_with_other_options() -> None:
    for kind in (QueryOptions, TrainingConfig):
        names = [one.option.old_name for one in options_of(kind).values() if one.option.old_name]
        assert len(set(names)) == len(names)
        assert not set(names) & set(options_of(kind))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90.0), ("90s", 90.0), ("10m", 600.0), ("1.5h", 5400.0), ("0", 0.0), (" 2 M ", 120.0)],
)
def test_a_time_is_seconds_minutes_or_hours(text: str, seconds: float) -> None:
    assert parse_time(text, "--budget") == seconds
    assert parse_time(shown_time(seconds), "--budget") == seconds


@pytest.mark.parametrize("text", ["", "m", "-5", "10 days", "1e9", "nan", "10m30s"])
def test_another_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_time(text, "--budget")
    assert caught.value.field == "--budget"
