"""MiniLMReader gives the same features as sentence-transformers with the same weights."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import ReaderUnavailableError
from lpf.reading import MiniLMReader, SentenceTransformerReader
from lpf.reading.export import installed_weights

TEXTS = [
    "Yes",
    "?",
    "The supplier passed the audit in March, although two minor findings remain open.",
    "Die Prüfung fand am 3. März in 東京 statt, naïve café — 👍🏽.",
    "İstanbul ﬁnally re\u0301sume\u0301 \u200bzero\u00a0width العربية हिन्दी",
    "LOUD TEXT!!! with (brackets), $1,234.56 and e-mail@example.org\n\nand lines\t.",
    "The inspector found no violation at the plant. " * 60,
    "word " * 254,
    "word " * 255,
    "pneumonoultramicroscopicsilicovolcanoconiosis" * 5,
]


@pytest.fixture(scope="module")
def reference() -> SentenceTransformerReader:
    with warnings.catch_warnings():
        # Its dependencies emit warnings on import.
        warnings.simplefilter("ignore")
        return SentenceTransformerReader(str(installed_weights()))


def test_parity_on_varied_texts(
    cutting: MiniLMReader, reference: SentenceTransformerReader
) -> None:
    ours, theirs = cutting.read_many(TEXTS), reference.read_many(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


def test_parity_with_512_tokens(cache_dir: Path, reference: SentenceTransformerReader) -> None:
    reference._model.max_seq_length = 512
    try:
        theirs = reference.read(TEXTS[6])
    finally:
        reference._model.max_seq_length = 256
    ours = MiniLMReader(cache_dir=cache_dir, max_length=512, passages=False).read(TEXTS[6])
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


def test_the_reader_id_contains_name_hash_and_length(reference: SentenceTransformerReader) -> None:
    name, _, rest = reference.reader_id.partition("@")
    assert name == "sentence-transformers:model"
    digest, *settings = rest.split(";")
    assert len(digest) == 16
    assert "max_length=256" in settings


def test_texts_that_are_cut_are_counted(
    cutting: MiniLMReader, reference: SentenceTransformerReader
) -> None:
    assert reference.cuts_after == 256
    assert reference.count_cut(["word " * 254, "word " * 255]) == 1
    assert reference.count_cut(TEXTS) == cutting.count_cut(TEXTS) > 0


def test_a_missing_model_is_not_downloaded() -> None:
    with pytest.raises(ReaderUnavailableError, match="allow_download=True"):
        SentenceTransformerReader("sentence-transformers/no-such-model-on-this-machine")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ReaderUnavailableError, match="pip install sentence-transformers"):
        SentenceTransformerReader("any")
