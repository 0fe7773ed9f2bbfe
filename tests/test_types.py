from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from builders import features, runtime
from lpf.errors import ConfigError, EvidenceError
from lpf.types import Evidence, QueryOptions


def evidence(**changes: object) -> Evidence:
    plain = {"evidence_id": "E1", "entity_id": "C1", "predicate": "p", "text_content": "words"}
    return Evidence(**{**plain, **changes})


def test_valid_evidence_is_accepted() -> None:
    item = evidence(credibility=1.0, timestamp=datetime(2026, 1, 1, tzinfo=UTC), claim="c")
    assert item.evidence_type == "text"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("text_content", "  "),
        ("entity_id", ""),
        ("credibility", 1.2),
        ("credibility", float("nan")),
        ("timestamp", datetime(2026, 1, 1)),
        ("evidence_type", "image"),
    ],
)
def test_invalid_evidence_is_refused_with_id_and_field(field: str, value: object) -> None:
    with pytest.raises(EvidenceError, match=rf"'E1': {field}"):
        evidence(**{field: value})


@pytest.mark.parametrize(
    "wrong",
    [
        {"variant": "both"},
        {"mode": "fast"},
        {"temperature": 0.0},
        {"variant": "learned", "temperature": -1.0},
        {"top_k": 0},
        {"min_credibility": -0.1},
        {"alpha": 2.0},
        {"weight_form": "sigmoid"},
        {"variant": "learned", "sampler": "plain"},
        {"variant": "learned", "n_samples": 4},
        {"sampler": "nonsense"},
        {"n_samples": 4},
        {"sampler": "plain", "n_samples": 0},
        {"seed": -1},
        {"seed": 2**53},
        {"uncertainty_samples": 1},
        {"uncertainty_samples": -1},
        {"query_text": " "},
        {"as_of": datetime(2026, 1, 1)},
    ],
)
def test_options_that_do_not_apply_are_refused(wrong: dict) -> None:
    named = next(name for name in reversed(wrong))
    with pytest.raises(ConfigError) as caught:
        QueryOptions(**wrong)
    assert caught.value.field == f"options.{named}"


def test_the_published_settings() -> None:
    paper, best = QueryOptions.paper(), QueryOptions.paper_best()
    assert (paper.n_samples, paper.temperature, paper.alpha, paper.top_k) == (16, 1.0, 2.0, 5)
    assert (best.n_samples, best.temperature, best.alpha, best.top_k) == (4, 0.8, 0.1, 5)


def test_a_single_posterior_equals_its_row_in_a_batch() -> None:
    posteriors = runtime(members=2).encode(features(3), ("a", "b", "c"))
    one = posteriors.item(1, member=1)
    assert one.evidence_id == "b"
    assert (one.mu == posteriors.mu[1, 1]).all()
    assert one.logvar == pytest.approx(2 * np.log(one.sigma))
    assert one.confidence == pytest.approx(1 / (1 + one.sigma.mean()))
