"""Choosing the transformer that is fine-tuned: the name of its results, and refused ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from bench_answers import answered
from huggingface_hub import constants

from lpf.baselines.transformer import require_loadable
from lpf.baselines.transformer_checkpoints import checkpoint_of, checkpoint_settings
from lpf.errors import ConfigError
from tiny_transformer import tiny_transformer


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """As with HF_HUB_OFFLINE, which is read on import: no test may wait for the hub."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_transformer(tmp_path_factory.mktemp("tiny"))


def test_a_name_is_stored_unchanged() -> None:
    settings = checkpoint_settings("bert-base-uncased")
    assert settings == (("checkpoint", "bert-base-uncased"),)
    assert checkpoint_of(dict(settings)) == "bert-base-uncased"


def test_invalid_transformer_settings_are_refused() -> None:
    assert checkpoint_of({}) is None
    assert checkpoint_of({"checkpoint": "a", "rho": 0.5}) is None
    assert "transformer: has no settings, got ['rho']" in (
        answered("transformer", rho=0.5).error or ""
    )


def test_a_folder_is_identified_by_its_content(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = Path(shutil.copytree(folder, tmp_path / "copied"))
    before = checkpoint_settings(str(copied))
    monkeypatch.chdir(tmp_path)
    assert checkpoint_settings("copied") == before  # wherever one stands
    assert dict(before)["digest"] == dict(checkpoint_settings(str(folder)))["digest"]
    tiny_transformer(copied, seed=2)
    assert checkpoint_settings("copied") != before


def test_only_the_chosen_transformer_answers(folder: Path) -> None:
    chosen = answered("transformer", **dict(checkpoint_settings(str(folder))))
    assert chosen.error is None
    np.testing.assert_allclose(chosen.answers.sum(axis=1), 1)
    assert chosen.costs.stored_bytes is None or chosen.costs.stored_bytes < 10_000_000  # no MiniLM


def test_a_usable_transformer_is_accepted(folder: Path) -> None:
    require_loadable(str(folder))


def refusal(model: str) -> str:
    with pytest.raises(ConfigError) as error:
        require_loadable(model)
    assert "\n" not in str(error.value)
    assert "Nothing was evaluated" in str(error.value)
    return str(error.value)


def test_an_unavailable_transformer_is_refused(tmp_path: Path) -> None:
    message = refusal("nobody/has-this-one")
    assert "model: 'nobody/has-this-one' cannot be loaded: there is no such folder" in message
    assert "HF_HUB_OFFLINE is set" in message
    assert "no such folder" in refusal("./nobody-has-this-one")
    (tmp_path / "empty").mkdir()
    message = refusal(str(tmp_path / "empty"))
    assert "cannot be loaded. Nothing" in message


def test_a_transformer_with_too_few_tokens_is_refused(tmp_path: Path) -> None:
    message = refusal(str(tiny_transformer(tmp_path, positions=128)))
    assert "cannot be fine-tuned here" in message
    assert "256 is more than the 128" in message
