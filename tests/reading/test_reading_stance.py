"""The stance reader: the same numbers as the network in torch, passages, errors, stored weights."""

from __future__ import annotations

import importlib.util
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer

from lpf.errors import EvidenceError, ReaderIntegrityError, ReaderUnavailableError
from lpf.reading import ReadRequest, StanceReader, export, stance_is_installed
from lpf.reading.export import EncoderSource, file_sha256
from lpf.reading.passages import passages
from lpf.reading.stance import (
    HIDDEN_WIDTH,
    MOST_PASSAGES,
    STANCE_WIDTH,
    STANCES,
    combined_passages,
    most_relevant,
    stance_probabilities,
)
from lpf.reading.stored_weights import pack_weights, unpack_weights
from lpf.training import pair_encoder
from lpf.training.pair_encoder import PairBatch
from tiny_stance import network_of, tiny_stance

CLAIM = "The plant complies with the emission limits."
TEXTS = [
    "The audit found no violation of the limits.",
    "Two violations are on record.",
    "The canteen closes at three.",
    "Die Prüfung fand am 3. März in 東京 statt, naïve café — 👍.",
    "Emissions were measured on forty days, and on each of them they were below the limit " * 2,
]
ITEMS = [ReadRequest(text, CLAIM) for text in TEXTS]
LONG = "The report has many pages about other plants. " * 60


@pytest.fixture(scope="session")
def stance_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("stance")


@pytest.fixture(scope="session")
def source(stance_dir: Path) -> EncoderSource:
    return tiny_stance(stance_dir)


@pytest.fixture(scope="session")
def stance(source: EncoderSource, stance_dir: Path) -> StanceReader:
    return StanceReader(source=source, weights_dir=stance_dir, cache_dir=stance_dir)


@pytest.fixture(scope="session")
def stance_int8(source: EncoderSource, stance_dir: Path) -> StanceReader:
    return StanceReader(
        source=source, weights_dir=stance_dir, cache_dir=stance_dir, precision="int8"
    )


@pytest.fixture(scope="session")
def tokenizer(source: EncoderSource, stance_dir: Path) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(stance_dir / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def ids(tokenizer: Tokenizer, text: str) -> list[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


def test_features_are_those_of_the_network_in_torch(
    stance: StanceReader, stance_dir: Path, tokenizer: Tokenizer
) -> None:
    network = network_of(stance_dir)
    pairs = [(ids(tokenizer, CLAIM), ids(tokenizer, text)) for text in TEXTS]
    with torch.no_grad():
        hidden, logits = network(PairBatch.of(pairs))
    expected = np.concatenate([hidden.numpy(), logits.numpy()], axis=1)
    features = stance.read_many(ITEMS)
    assert features.shape == (len(TEXTS), STANCE_WIDTH) == expected.shape
    assert expected.std() > 0.01
    np.testing.assert_allclose(features, expected, atol=1e-4, rtol=0)
    assert pair_encoder.STANCES == STANCES


@pytest.mark.parametrize("precision", ["stance", "stance_int8"])
def test_features_do_not_depend_on_the_batch(
    precision: str, request: pytest.FixtureRequest
) -> None:
    reader: StanceReader = request.getfixturevalue(precision)
    alone = np.stack([reader.read(item.text, item.claim) for item in ITEMS])
    together = reader.read_many([*ITEMS * 3, ReadRequest(LONG, CLAIM)])
    np.testing.assert_allclose(together[:-1], np.tile(alone, (3, 1)), atol=2e-6, rtol=0)


def test_features_do_not_depend_on_the_number_of_threads(
    stance: StanceReader, source: EncoderSource, stance_dir: Path
) -> None:
    single = StanceReader(source=source, weights_dir=stance_dir, cache_dir=stance_dir, threads=1)
    np.testing.assert_array_equal(single.read_many(ITEMS), stance.read_many(ITEMS))


def test_claim_and_text_are_not_interchangeable(stance: StanceReader) -> None:
    one, other = stance.read(TEXTS[0], CLAIM), stance.read(CLAIM, TEXTS[0])
    assert not np.allclose(one, other, atol=1e-3)


def test_an_item_without_a_claim_has_zeros(stance: StanceReader) -> None:
    features = stance.read_many([TEXTS[0], ITEMS[0], ReadRequest(TEXTS[1])])
    assert not features[[0, 2]].any()
    np.testing.assert_allclose(features[1], stance.read(TEXTS[0], CLAIM), atol=2e-6)
    assert not stance.read_many(TEXTS).any()


def test_without_claims_the_weights_are_not_opened(tmp_path: Path) -> None:
    reader = StanceReader(weights_dir=tmp_path / "none", cache_dir=tmp_path)
    assert not reader.read_many(TEXTS).any()


def test_progress_also_counts_items_without_a_claim(stance: StanceReader) -> None:
    seen: list[tuple[int, int]] = []
    items = [*ITEMS, TEXTS[0], ReadRequest(LONG, CLAIM)]
    stance.read_many(items, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(items), len(items))


def test_a_long_text_is_read_in_passages(stance: StanceReader, tokenizer: Tokenizer) -> None:
    claim, text = ids(tokenizer, CLAIM), ids(tokenizer, LONG)
    parts = passages(text, 192 - 3 - len(claim))
    assert 1 < len(parts) <= MOST_PASSAGES
    rows = np.stack([stance.read(tokenizer.decode(list(part)), CLAIM) for part in parts])
    np.testing.assert_allclose(stance.read(LONG, CLAIM), combined_passages(rows), atol=1e-4, rtol=0)


def test_the_end_of_a_long_text_counts(stance: StanceReader) -> None:
    changed = LONG + "The plant does not comply."
    assert not np.allclose(stance.read(LONG, CLAIM), stance.read(changed, CLAIM), atol=1e-4)


def test_passages_that_say_something_count_more() -> None:
    rows = np.zeros((2, STANCE_WIDTH), np.float32)
    rows[0, 0], rows[1, 0] = 1.0, -1.0
    rows[0, HIDDEN_WIDTH:] = [8.0, 0.0, 0.0]  # supports
    rows[1, HIDDEN_WIDTH:] = [0.0, 0.0, 8.0]  # neutral
    assert combined_passages(rows)[0] > 0.99


def test_of_many_passages_those_that_share_words_with_the_claim_are_read() -> None:
    claim = [11, 12, 13]
    parts = [np.full(4, 900 + place, np.int32) for place in range(3 * MOST_PASSAGES)]
    for place in (5, 40):
        parts[place][0] = 12
    chosen = most_relevant(claim, parts)
    assert len(chosen) == MOST_PASSAGES
    assert sum(any(part is one for one in chosen) for part in (parts[5], parts[40])) == 2
    order = [int(part[-1]) for part in chosen]
    assert order == sorted(order)


def test_a_rare_word_counts_more_than_one_that_every_passage_has() -> None:
    parts = [np.array([7, 500 + place], np.int32) for place in range(2 * MOST_PASSAGES)]
    parts[-1] = np.array([8, 8], np.int32)
    assert any(part is parts[-1] for part in most_relevant([7, 8], parts))


def test_beyond_the_most_passages_only_what_is_about_the_claim_counts(
    stance: StanceReader,
) -> None:
    filler = "Lunch was soup again today, and many were late. " * 400
    matter = "The plant complies with the emission limits. " * 30
    features = stance.read(filler + matter + filler, CLAIM)
    other_end = filler + matter + filler.removesuffix("late. ") + "early. "
    np.testing.assert_allclose(stance.read(other_end, CLAIM), features, atol=1e-5)
    other_matter = filler + matter.replace("complies", "struggles") + filler
    assert not np.allclose(stance.read(other_matter, CLAIM), features, atol=1e-3)


def test_int8_is_close_and_has_its_own_id(stance: StanceReader, stance_int8: StanceReader) -> None:
    exact, rounded = stance.read_many(ITEMS), stance_int8.read_many(ITEMS)
    change = np.abs(stance_probabilities(exact) - stance_probabilities(rounded))
    assert change.max() < 0.05
    assert stance.reader_id != stance_int8.reader_id


def test_probabilities_sum_to_one() -> None:
    features = np.zeros((2, STANCE_WIDTH), np.float32)
    features[1, HIDDEN_WIDTH:] = [900.0, 0.0, -900.0]
    found = stance_probabilities(features)
    np.testing.assert_allclose(found, [[1 / 3] * 3, [1, 0, 0]], atol=1e-12)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [("", "empty"), (" \n", "empty"), ("\x00\x01", "no readable character"), (7, "a string")],
)
@pytest.mark.parametrize("role", ["claim", "text"])
def test_an_unreadable_item_is_named(stance: StanceReader, role: str, bad, reason: str) -> None:
    items = [ITEMS[0], TEXTS[0], replace(ITEMS[1], **{role: bad})]
    with pytest.raises(EvidenceError, match=rf"items\[2\]\.{role}: .*{reason}"):
        stance.read_many(items)


def test_missing_weights_are_named_with_how_to_install_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "installed_weights", lambda source: None)
    reader = StanceReader(cache_dir=tmp_path)
    with pytest.raises(ReaderUnavailableError, match=r"pip install \./packages/lpf-stance"):
        reader.read(TEXTS[0], CLAIM)


def test_a_package_that_is_not_there_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not stance_is_installed()


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_damaged_weights_are_rejected(
    tmp_path: Path, source: EncoderSource, stance_dir: Path, name: str
) -> None:
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / file).write_bytes((stance_dir / file).read_bytes())
    with (tmp_path / name).open("r+b") as stream:
        stream.seek(-1000, 2)
        stream.write(b"damaged")
    reader = StanceReader(source=source, weights_dir=tmp_path, cache_dir=tmp_path / "cache")
    with pytest.raises(ReaderIntegrityError, match=f"{name} is not the published"):
        reader.read(TEXTS[0], CLAIM)


def test_stored_weights_come_back_within_half_a_step() -> None:
    draw = np.random.default_rng(0)
    tensors = {
        "layer.weight": draw.normal(size=(40, 30)).astype(np.float32),
        "half.weight": draw.normal(size=(40, 30)).astype(np.float32),
        "stance.weight": draw.normal(size=(3, 30)).astype(np.float32),
        "layer.bias": draw.normal(size=40).astype(np.float32),
    }
    tensors["layer.weight"][7] = 0.0
    content = pack_weights(tensors, halves={"half.weight"})
    found = unpack_weights(content)
    assert content == pack_weights(dict(reversed(tensors.items())), halves={"half.weight"})
    assert found.keys() == tensors.keys()
    assert {one.dtype for one in found.values()} == {np.dtype(np.float32)}
    for exact in ("stance.weight", "layer.bias"):
        np.testing.assert_array_equal(found[exact], tensors[exact])
    np.testing.assert_allclose(found["half.weight"], tensors["half.weight"], rtol=1e-3)
    steps = np.abs(tensors["layer.weight"]).max(axis=1, keepdims=True) / 127
    assert (np.abs(found["layer.weight"] - tensors["layer.weight"]) <= 0.5001 * steps).all()
    np.testing.assert_array_equal(found["layer.weight"][7], 0.0)


def test_weights_that_were_stored_before_are_stored_without_loss() -> None:
    tensors = {"layer.weight": np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)}
    once = pack_weights(tensors)
    found = unpack_weights(pack_weights(unpack_weights(once)))
    np.testing.assert_allclose(
        found["layer.weight"], unpack_weights(once)["layer.weight"], rtol=1e-6
    )


PACKAGED = Path(__file__).parents[2] / "packages" / "lpf-stance" / "src" / "lpf_stance" / "model"


@pytest.mark.skipif(
    not (PACKAGED / "model.safetensors").exists(), reason="the packaged weights are not here"
)
def test_the_package_holds_the_weights_that_are_pinned() -> None:
    weights = PACKAGED / "model.safetensors"
    assert file_sha256(weights) == export.STANCE.weights_sha256
    assert file_sha256(PACKAGED / "tokenizer.json") == export.STANCE.tokenizer_sha256
    assert weights.stat().st_size < 50_000_000
    assert export.STANCE.weights_sha256 in (PACKAGED / "card.md").read_text(encoding="utf-8")
