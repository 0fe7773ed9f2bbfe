"""PairReader, and opening a reader by name."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from hash_reader import CueReader, HashReader
from lpf.errors import ConfigError, EvidenceError
from lpf.reading import MiniLMReader, PairReader, ReadRequest, factory, open_reader
from lpf.reading.pair import reads_stance, stance_start, text_part
from lpf.reading.stance import STANCE_WIDTH, relevance


class CountingReader(MiniLMReader):
    """Records every text it reads."""

    seen: list[str]

    def read_many(self, items, *, progress=None):
        self.seen.extend(getattr(item, "text", item) for item in items)
        return super().read_many(items, progress=progress)


def test_features_are_claim_evidence_difference_product(minilm: MiniLMReader) -> None:
    claim, text = minilm.read("It rains."), minilm.read("The streets are wet.")
    features = PairReader(minilm).read("The streets are wet.", "It rains.")
    expected = np.concatenate([claim, text, abs(claim - text), claim * text])
    np.testing.assert_allclose(features, expected, atol=1e-6)


def test_a_shared_claim_is_read_once(cache_dir: Path) -> None:
    inner = CountingReader(cache_dir=cache_dir)
    inner.seen = []
    PairReader(inner).read_many([ReadRequest(f"Text {n}.", f"Claim {n % 2}.") for n in range(6)])
    assert sorted(inner.seen) == sorted([*(f"Text {n}." for n in range(6)), "Claim 0.", "Claim 1."])


def test_without_a_claim_its_part_is_zeros(minilm: MiniLMReader) -> None:
    items = ["The streets are wet.", ReadRequest("The streets are wet.", "It rains."), "Dry."]
    features = PairReader(minilm).read_many(items)
    text = minilm.read("The streets are wet.")
    expected = np.concatenate([np.zeros_like(text), text, abs(text), np.zeros_like(text)])
    np.testing.assert_allclose(features[0], expected, atol=1e-6)
    alone = PairReader(minilm).read("The streets are wet.", "It rains.")
    np.testing.assert_allclose(features[1], alone, atol=1e-6)


def test_an_empty_claim_is_named_by_its_index(minilm: MiniLMReader) -> None:
    with pytest.raises(EvidenceError, match=r"items\[1\]\.claim: is empty"):
        PairReader(minilm).read_many([ReadRequest("text"), ReadRequest("text", " ")])


def test_an_unreadable_claim_is_named_by_its_item(minilm: MiniLMReader) -> None:
    """Claims are read once each, so their own numbers differ from those of the items."""
    requests = [ReadRequest("text", "A claim."), ReadRequest("text", "A claim.")]
    with pytest.raises(EvidenceError) as refused:
        PairReader(minilm).read_many([*requests, ReadRequest("text", "\x00\x01")])
    assert refused.value.field == "items[2].claim"


def test_relevance_of_a_hand_worked_case() -> None:
    """exp of the logits is 1, 1, 2, so neutral has one half; 2, 1, 1; 1, 6, 1; no claim."""
    rows = np.full((4, 5), 7.0, np.float32)
    rows[:, 2:] = np.log([[1, 1, 2], [2, 1, 1], [1, 6, 1], [1, 1, 1]])
    np.testing.assert_allclose(relevance(rows, 2), [1 / 4, 9 / 16, 49 / 64, 1.0], rtol=1e-6)
    far = np.array([[-200.0, -200.0, 200.0], [200.0, -200.0, -200.0]], np.float32)
    np.testing.assert_allclose(relevance(far, 0), [0.0, 1.0], atol=1e-12)


def test_the_stance_logits_are_the_last_features() -> None:
    inner = HashReader(8)
    pair = PairReader(inner, CueReader())
    requests = [ReadRequest("It did indeed", "It did."), ReadRequest("It did indeed")]
    features = pair.read_many([*requests, ReadRequest("Perhaps.", "It did.")])
    start = stance_start(pair.reader_id, pair.width)
    assert start == pair.width - 3
    np.testing.assert_array_equal(features[:, start:], [[4, 0, -1], [0, 0, 0], [0, 0, 3]])
    weights = relevance(features, start)
    assert weights[1] == 1.0
    assert weights[2] < 0.02
    assert text_part(pair.reader_id, pair.width) == slice(8, 16)
    assert stance_start(PairReader(inner).reader_id, 32) is None
    assert stance_start(inner.reader_id, 8) is None


def test_a_pair_of_a_pair_is_rejected(minilm: MiniLMReader) -> None:
    with pytest.raises(ConfigError, match="already reads the claim"):
        PairReader(PairReader(minilm))


def test_open_reader_opens_a_reader_by_name(cache_dir: Path, minilm: MiniLMReader) -> None:
    assert open_reader(cache_dir=cache_dir).reader_id == minilm.reader_id
    assert "int8" in open_reader(precision="int8", cache_dir=cache_dir).reader_id


@pytest.mark.parametrize("installed", [True, False])
def test_claims_are_read_with_the_stance_reader_if_it_is_installed(
    cache_dir: Path, minilm: MiniLMReader, monkeypatch: pytest.MonkeyPatch, installed: bool
) -> None:
    monkeypatch.setattr(factory, "stance_is_installed", lambda: installed)
    reader = open_reader(cache_dir=cache_dir, with_claim=True)
    assert reader.width == 4 * minilm.width + installed * STANCE_WIDTH
    assert reads_stance(reader.reader_id) is installed
    assert text_part(reader.reader_id, reader.width) == slice(minilm.width, 2 * minilm.width)
    assert not reads_stance(reader.pinned(PairReader(minilm).reader_id).reader_id)


def test_a_setting_of_another_reader_is_rejected() -> None:
    with pytest.raises(ConfigError, match=r"precision, threads: .*minilm"):
        open_reader("sentence-transformers:model", precision="int8", threads=2)


@pytest.mark.parametrize("name", ["bert", "", "sentence-transformers:"])
def test_an_unknown_reader_is_rejected(name: str) -> None:
    with pytest.raises(ConfigError, match="reader: must be"):
        open_reader(name)
