from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from builders import features, model_config, sharp_tensors
from lpf.errors import ArtefactFormatError, ArtefactHashError, ArtefactTensorError
from lpf.model import artefact
from lpf.model.artefact import FILES, CardScores, ModelCard, load_model, save_model

CARD = ModelCard(
    name="test",
    data="random weights",
    intended_use="tests",
    unsuitable_use="anything else",
    metrics={"accuracy": 0.5},
    notes=("never trained",),
)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    config = model_config(2, seeds=(0, 1), calibration={"level": {"rho": 0.07}})
    return tmp_path / save_model(tmp_path, config, sharp_tensors(config), CARD)


def resealed(folder: Path) -> Path:
    """The folder under the name its content now asks for, as a forger would leave it."""
    contents = {name: (folder / name).read_bytes() for name in FILES}
    return folder.rename(folder.parent / artefact._version(contents))


def test_a_saved_model_is_loaded_unchanged(saved: Path) -> None:
    loaded = load_model(saved)
    config = model_config(2, seeds=(0, 1), calibration={"level": {"rho": 0.07}})
    assert loaded.config == config
    assert loaded.card == CARD
    tensors = sharp_tensors(config)
    assert all((loaded.tensors[name] == tensors[name]).all() for name in tensors)
    assert loaded.runtime().version == saved.name
    assert loaded.runtime().encode(features(2)).mu.shape == (2, 2, 64)


def test_the_version_depends_on_the_content(tmp_path: Path) -> None:
    config = model_config()
    one = save_model(tmp_path, config, sharp_tensors(config), CARD)
    again = save_model(tmp_path, config, sharp_tensors(config), CARD)
    other = save_model(tmp_path, config, sharp_tensors(config, seed=1), CARD)
    assert one == again != other
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([one, other])


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_found(saved: Path, name: str) -> None:
    content = bytearray((saved / name).read_bytes())
    content[len(content) // 2] ^= 1
    (saved / name).write_bytes(content)
    with pytest.raises(ArtefactHashError, match="the content hashes to"):
        load_model(saved)


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_named(saved: Path, name: str) -> None:
    (saved / name).unlink()
    with pytest.raises(ArtefactFormatError, match=name):
        load_model(saved)


def test_a_pickle_is_never_opened(saved: Path, tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple:
            return (Path.touch, (tmp_path / "exploded",))

    (saved / "weights.safetensors").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(ArtefactFormatError, match="not a safetensors file"):
        load_model(resealed(saved))
    assert not (tmp_path / "exploded").exists()


def test_missing_and_misshaped_tensors_are_named(saved: Path) -> None:
    tensors = load_file(saved / "weights.safetensors")
    removed = tensors.pop("decoder.head.level.bias")
    save_file(tensors, saved / "weights.safetensors")
    saved = resealed(saved)
    with pytest.raises(ArtefactTensorError, match=r"weights.safetensors.*decoder.head.level.bias"):
        load_model(saved)
    tensors["decoder.head.level.bias"] = np.ascontiguousarray(removed[:, :2])
    save_file(tensors, saved / "weights.safetensors")
    with pytest.raises(ArtefactTensorError, match=r"float32 \(2, 2\).*float32 \(2, 3\)"):
        load_model(resealed(saved))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"format": "lpf-model/2"}, "this version reads 'lpf-model/1'"),
        ({"surprise": 1}, "surprise"),
        ({"members": 0}, "members"),
        ({"encoder": {"__class__": "os.system"}}, "encoder|__class__"),
    ],
)
def test_an_unknown_config_is_refused(saved: Path, change: dict, named: str) -> None:
    document = json.loads((saved / "config.json").read_text())
    (saved / "config.json").write_text(json.dumps(document | change))
    with pytest.raises(ArtefactFormatError, match=named):
        load_model(resealed(saved))


def test_files_that_are_not_json_are_refused(saved: Path) -> None:
    (saved / "config.json").write_text("{not json")
    with pytest.raises(ArtefactFormatError, match=r"config.json: not valid JSON"):
        load_model(resealed(saved))


def test_the_markdown_card_has_every_section() -> None:
    text = CARD.to_markdown()
    for part in ("# test", "random weights", "accuracy: 0.5", "anything else", "never trained"):
        assert part in text


def test_the_stored_form_of_a_card_does_not_change() -> None:
    """Its bytes are part of the version: a field more would give every model another name."""
    card = ModelCard("name", "data", "use", "misuse", {"a": 1.0}, ("note",))
    assert sorted(card.to_dict()) == [
        *("data", "intended_use", "metrics", "name", "notes", "unsuitable_use")
    ]


@pytest.mark.parametrize(
    ("data", "name", "entities", "digest"),
    [
        (
            "claims: 80 entities (56 train, 12 validation, 12 test), 9 items; sha256 "
            "b2ffcf9dabef4315.",
            "claims",
            80,
            "b2ffcf9dabef4315",
        ),
        ("a: b: 8 entities, all trained on, judged in folds, 16 items.", "a: b", 8, None),
        ("made by hand", None, None, None),
    ],
)
def test_a_card_describes_its_data(
    data: str, name: str | None, entities: int | None, digest: str | None
) -> None:
    card = ModelCard("name", data, "use", "misuse")
    assert (card.data_name, card.entities, card.data_digest) == (name, entities, digest)


def test_a_card_is_scored_on_the_most_independent_entities() -> None:
    metrics = {"a/b/validation/spn/nll": 0.1, "a/b/nll_fitted": 0.0}
    card = ModelCard("name", "data", "use", "misuse", metrics)
    assert card.held_out() == (CardScores("a/b", "validation", "spn", {"nll": 0.1}),)
    card = ModelCard("name", "data", "use", "misuse", {**metrics, "a/b/test/spn/nll": 0.2})
    assert card.held_out() == (CardScores("a/b", "test", "spn", {"nll": 0.2}),)
    assert ModelCard("name", "data", "use", "misuse").held_out() == ()


def test_the_markdown_card_lists_the_predicates() -> None:
    card = ModelCard("name", "data", "use", "misuse")
    assert "## Predicates\n\n- level: low, high" in card.to_markdown({"level": ("low", "high")})
    assert "Predicates" not in card.to_markdown()
