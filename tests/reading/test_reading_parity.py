"""The same features as sentence-transformers gives for the same weights."""

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
def referee() -> SentenceTransformerReader:
    with warnings.catch_warnings():
        # Its dependencies warn while they are imported; that is not ours to mend.
        warnings.simplefilter("ignore")
        return SentenceTransformerReader(str(installed_weights()))


def test_parity_on_varied_texts(minilm: MiniLMReader, referee: SentenceTransformerReader) -> None:
    ours, theirs = minilm.read_many(TEXTS), referee.read_many(TEXTS)
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


def test_every_text_of_up_to_512_tokens_can_be_compared(
    cache_dir: Path, referee: SentenceTransformerReader
) -> None:
    referee._model.max_seq_length = 512
    try:
        theirs = referee.read(TEXTS[6])
    finally:
        referee._model.max_seq_length = 256
    ours = MiniLMReader(cache_dir=cache_dir, max_length=512).read(TEXTS[6])
    np.testing.assert_allclose(ours, theirs, atol=1e-5, rtol=0)


def test_id_holds_name_hash_precision_and_length(referee: SentenceTransformerReader) -> None:
    name, _, rest = referee.reader_id.partition("@")
    assert name == "sentence-transformers:model"
    digest, *settings = rest.split(";")
    assert len(digest) == 16
    assert "max_length=256" in settings


def test_model_that_is_not_here_is_not_fetched() -> None:
    with pytest.raises(ReaderUnavailableError, match="allow_download=True"):
        SentenceTransformerReader("sentence-transformers/no-such-model-on-this-machine")


def test_missing_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ReaderUnavailableError, match="pip install sentence-transformers"):
        SentenceTransformerReader("any")
