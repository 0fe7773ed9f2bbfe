from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders import model_config, sharp_tensors
from lpf.errors import ArtefactTensorError, ConfigError
from lpf.items import Segments
from lpf.model.artefact import load_model, save_model
from lpf.model.claim_alone import ClaimAlone
from lpf.model.config import EncoderConfig, ModelConfig
from lpf.model.runtime import Runtime
from workspaces import CARD

# A claim with the first feature is three times as often of the first value as of the second.
KNOWN = ClaimAlone(
    np.array([[np.log(3.0), 0.0], [0.0, 0.0]], np.float32),
    np.zeros(2, np.float32),
    np.log([0.6, 0.4]).astype(np.float32),
)
TELLING, SILENT, NONE = (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)


def test_what_a_claim_says_beyond_the_class_shares_is_taken_out() -> None:
    """P(y | claim) is (3/4, 1/4), the shares are (0.6, 0.4)."""
    features = np.array([[*TELLING, 7.0], [*TELLING, -1.0]], np.float32)  # a feature of the text
    found = KNOWN.taken_out(features, Segments.one(2))
    np.testing.assert_allclose(np.exp(found), [[0.6 / 0.75, 0.4 / 0.25]], rtol=1e-6)


def test_every_entity_has_its_own_claim_and_items_without_one_do_not_count() -> None:
    features = np.array([TELLING, NONE, SILENT, NONE, TELLING, SILENT], np.float32)
    found = KNOWN.taken_out(features, Segments.of_counts([2, 1, 1, 2, 0]))
    telling, silent = np.log([0.8, 1.6]), np.log([1.2, 0.8])
    expected = [telling, silent, [0.0, 0.0], (telling + silent) / 2, [0.0, 0.0]]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def with_claims(width: int = 32) -> tuple[ModelConfig, dict[str, np.ndarray]]:
    config = model_config(
        2, encoder=EncoderConfig(width), reader_id="pair(hash@8)", claim_alone=("outcome",)
    )
    plain = sharp_tensors(replace(config, claim_alone=()))
    known = ClaimAlone(np.ones((8, 2)), np.zeros(2), np.log([0.5, 0.5]))
    return config, {**plain, **known.tensors("outcome")}


def test_it_is_stored_with_the_model_and_shared_by_its_members(tmp_path) -> None:
    config, tensors = with_claims()
    loaded = load_model(tmp_path / save_model(tmp_path, config, tensors, CARD)).runtime()
    assert loaded.config.claim_alone == ("outcome",)
    for one in (loaded, loaded.member(1)):
        assert set(one.claim_alone) == {"outcome"}
        np.testing.assert_array_equal(one.claim_alone["outcome"].weight, np.ones((8, 2)))


def test_a_model_without_it_is_stored_as_before() -> None:
    assert "claim_alone" not in model_config().to_dict()
    assert Runtime(model_config(), sharp_tensors(model_config())).claim_alone == {}


def test_it_must_fit_the_reader_and_the_predicates() -> None:
    config, tensors = with_claims()
    with pytest.raises(ConfigError, match="does not read claims"):
        Runtime(replace(config, reader_id="hash@32"), tensors)
    with pytest.raises(ConfigError, match="not a predicate"):
        replace(config, claim_alone=("colour",))
    del tensors["claim.outcome.bias"]
    with pytest.raises(ArtefactTensorError):
        Runtime(config, tensors)
