from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from training_examples import SMALL, made_up

from lpf.errors import DatasetError
from lpf.training import train_few
from lpf.training.cautions import wilson
from lpf.training.evaluation import answers
from lpf.types import QueryOptions

SEEDS = (1, 2, 3)
LONG = replace(SMALL, max_epochs=40)


def test_a_handful_of_entities_makes_a_model_that_says_how_far_to_trust_it() -> None:
    few = made_up(9, noise=0.4, splits=False)
    model = train_few(few, "hash", ("level",), LONG, SEEDS)
    scores = model.scores["out of fold/spn"]["level"]
    assert scores.entities == 9
    told = " ".join(model.cautions)
    assert "of entities it had not seen" in told
    assert "9 entities only" in told
    assert model.config.seeds == (1, 2)
    assert model.config.calibrated_on == {"level": 9}
    more = made_up(60, seed=3, noise=0.4, splits=False)
    found = answers(model.runtime(), few.dataset.schema, "level", more, QueryOptions())
    right = found.argmax(axis=1) == more.dataset.labels("level")
    assert right.mean() > 0.6


def test_what_is_said_of_an_item_comes_from_networks_that_did_not_see_it() -> None:
    """Labels without any relation to the features can be learned by heart, not out of fold."""
    few = made_up(40, noise=0.4, splits=False)
    shuffled = np.random.default_rng(0).permutation(len(few.features))
    lost = made_up(40, noise=0.4, splits=False)
    lost = type(lost)(lost.dataset, lost.features[shuffled], lost.credibility, lost.groups)
    model = train_few(lost, "hash", ("level",), LONG, SEEDS)
    scores = model.scores["out of fold/spn"]["level"]
    assert scores.accuracy < 0.7
    assert scores.nll > 0.8 * scores.prior_nll


def test_a_value_with_one_entity_is_refused() -> None:
    few = made_up(9, splits=False)
    labels = few.dataset.labels("level")
    value = labels[0]
    kept = np.array([0, *np.flatnonzero(labels != value)])
    with pytest.raises(DatasetError, match="fewer than 2 entities"):
        train_few(few.select(kept), "hash", ("level",), LONG, SEEDS)


def test_wilson_interval_of_a_hand_worked_case() -> None:
    low, high = wilson(8, 10)
    assert (low, high) == pytest.approx((0.4902, 0.9433), abs=1e-4)
    assert wilson(0, 5)[0] == pytest.approx(0.0, abs=1e-12)
