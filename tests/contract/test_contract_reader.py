"""The contract of every reader."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import EvidenceError
from lpf.reading import (
    MiniLMReader,
    PairReader,
    Reader,
    ReadRequest,
    SentenceTransformerReader,
    StanceReader,
)
from lpf.reading.export import installed_weights
from tiny_stance import tiny_stance

TEXTS = [
    "A longer sentence about the plant's third inspection this year, which found nothing at all.",
    "Short.",
    "Déjà vu in 東京.",
    "The report is late. " * 80,
]
ITEMS = [ReadRequest(text, f"Claim {n % 2}.", {"rating": n}) for n, text in enumerate(TEXTS)]


def sentence_transformer() -> Reader:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # its dependencies emit warnings on import
        return SentenceTransformerReader(str(installed_weights()))


def stance(cache: Path) -> Reader:
    folder = cache / "stance"
    return StanceReader(source=tiny_stance(folder), weights_dir=folder, cache_dir=cache)


BUILDERS: dict[str, Callable[[Path], Reader]] = {
    "minilm": lambda cache: MiniLMReader(cache_dir=cache),
    "minilm-int8": lambda cache: MiniLMReader(cache_dir=cache, precision="int8"),
    "pair": lambda cache: PairReader(MiniLMReader(cache_dir=cache)),
    "stance": stance,
    "pair with stance": lambda cache: PairReader(MiniLMReader(cache_dir=cache), stance(cache)),
    "sentence-transformer": lambda cache: sentence_transformer(),
}


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", params=BUILDERS)
def reader(request: pytest.FixtureRequest, cache: Path) -> Reader:
    return BUILDERS[request.param](cache)


def test_it_is_a_reader(reader: Reader) -> None:
    assert isinstance(reader, Reader)
    assert isinstance(reader.uses_claim, bool)
    assert isinstance(reader.uses_fields, bool)


def test_rows_are_finite_float32_of_its_width(reader: Reader) -> None:
    features = reader.read_many(ITEMS)
    assert features.shape == (len(ITEMS), reader.width)
    assert features.dtype == np.float32
    assert np.isfinite(features).all()


def test_no_items_give_no_rows(reader: Reader) -> None:
    features = reader.read_many([])
    assert features.shape == (0, reader.width)
    assert features.dtype == np.float32


def test_an_item_has_the_same_features_alone_and_among_others(reader: Reader) -> None:
    alone = np.stack([reader.read(item.text, item.claim, item.fields) for item in ITEMS])
    np.testing.assert_allclose(alone, reader.read_many(ITEMS), atol=1e-6, rtol=0)


def test_rows_are_in_the_order_of_the_items(reader: Reader) -> None:
    backwards = reader.read_many(ITEMS[::-1])
    np.testing.assert_allclose(backwards[::-1], reader.read_many(ITEMS), atol=1e-6, rtol=0)


def test_reading_twice_gives_equal_features(reader: Reader) -> None:
    np.testing.assert_array_equal(reader.read_many(ITEMS), reader.read_many(ITEMS))


def test_features_depend_on_the_claim_if_uses_claim(reader: Reader) -> None:
    first, second = reader.read("A text.", "One claim."), reader.read("A text.", "Another thing.")
    assert np.allclose(first, second, atol=1e-6) != reader.uses_claim


def test_features_depend_on_the_fields_if_uses_fields(reader: Reader) -> None:
    first = reader.read("A text.", "A claim.", {"rating": 1})
    second = reader.read("A text.", "A claim.", {"rating": 5})
    assert np.allclose(first, second, atol=1e-6) != reader.uses_fields


def test_progress_ends_at_the_total(reader: Reader) -> None:
    seen: list[tuple[int, int]] = []
    reader.read_many(ITEMS, progress=lambda done, total: seen.append((done, total)))
    assert seen == sorted(seen)
    assert seen[-1] == (len(ITEMS), len(ITEMS))


@pytest.mark.parametrize("bad", ["", "  ", None, 7])
def test_an_invalid_text_is_named_by_its_index(reader: Reader, bad: object) -> None:
    items = [ReadRequest("A text.", "A claim."), ReadRequest(bad, "A claim.")]  # type: ignore[arg-type]
    with pytest.raises(EvidenceError, match=r"items\[1\]"):
        reader.read_many(items)


def test_the_id_is_stable_and_contains_precision_and_length(reader: Reader) -> None:
    assert reader.reader_id == reader.reader_id
    assert "precision=" in reader.reader_id
    assert "max_length=" in reader.reader_id


def test_readers_have_different_ids(cache: Path) -> None:
    ids = [build(cache).reader_id for build in BUILDERS.values()]
    assert len(set(ids)) == len(ids)
