"""Logits of words as features: beside those of another reader, and in the reader's ID."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from hash_reader import CueReader, HashReader
from lpf.reading import MiniLMReader, PairReader, Reader, ReadRequest
from lpf.reading.fitted_words import (
    FittedWords,
    LexicalModel,
    WordsReader,
    with_words,
    without_words,
    words_width,
)
from lpf.reading.lexical import BUCKETS, inverse_frequencies, ngram_counts, weighted_rows
from lpf.reading.pair import reads_stance, stance_start, text_part
from lpf.reading.reader import IN_PASSAGES
from lpf.reading.stance import STANCES

TEXTS = ("Paid late.", "Paid on time.", "Nothing was paid.", "Paid late.")
REQUESTS = [ReadRequest(text) for text in TEXTS]


def lexical(values: int = 2, seed: int = 0) -> LexicalModel:
    drawn = np.random.default_rng(seed)
    return LexicalModel(
        inverse_frequencies(ngram_counts(TEXTS)),
        drawn.standard_normal((BUCKETS, values)).astype(np.float32),
        drawn.standard_normal(values).astype(np.float32),
    )


def words(*values: int) -> FittedWords:
    return FittedWords({f"p{place}": lexical(count, place) for place, count in enumerate(values)})


class CountingReader(HashReader):
    count = 0

    def read_many(self, items, *, progress=None):
        self.count += len(items)
        return super().read_many(items, progress=progress)


@pytest.fixture
def base() -> CountingReader:
    return CountingReader(8)


@pytest.fixture
def reader(base: CountingReader) -> WordsReader:
    return WordsReader(base, words(2, 3))


def test_logits_are_those_of_each_predicate_side_by_side() -> None:
    fitted = words(2, 3)
    logits = fitted.logits(REQUESTS)
    assert (fitted.width, logits.shape) == (5, (4, 5))
    one = fitted.models["p1"]
    expected = weighted_rows(ngram_counts(TEXTS), one.idf) @ one.weight + one.bias
    np.testing.assert_allclose(logits[:, 2:], expected, atol=1e-5)
    np.testing.assert_array_equal(logits[0], logits[3])


def test_logits_depend_on_the_claim() -> None:
    fitted = words(2)
    alone, claimed = fitted.logits([ReadRequest("Paid late."), ReadRequest("Paid late.", "Paid.")])
    assert np.abs(alone - claimed).max() > 0.01


def test_features_are_those_of_the_base_and_the_logits(reader: WordsReader) -> None:
    features = reader.read_many(TEXTS)
    assert reader.width == 13
    assert (features.shape, features.dtype) == ((4, 13), np.float32)
    np.testing.assert_array_equal(features[:, :8], HashReader(8).read_many(TEXTS))
    logits = words(2, 3).logits(REQUESTS)
    np.testing.assert_allclose(features[:, 8:], logits, rtol=1e-6)
    np.testing.assert_array_equal(reader.read(TEXTS[1]), features[1])


def test_features_are_extended_without_reading_again(
    base: CountingReader, reader: WordsReader
) -> None:
    features = reader.read_many(TEXTS)
    read = base.read_many(TEXTS)
    base.count = 0
    np.testing.assert_array_equal(reader.extend(read, REQUESTS), features)
    assert base.count == 0


def test_nothing_is_read_for_an_empty_list(reader: WordsReader) -> None:
    assert reader.read_many([]).shape == (0, 13)
    assert reader.extend(reader.base.read_many([]), []).shape == (0, 13)


def test_the_id_says_the_width_and_follows_the_tensors(base: Reader) -> None:
    ids = [
        WordsReader(base, fitted).reader_id
        for fitted in (
            words(2),
            FittedWords({"p0": lexical(2, 9)}),
            FittedWords({"another": lexical(2)}),
            *(
                FittedWords({"p0": replace(lexical(), **{name: getattr(lexical(), name) + 1})})
                for name in ("idf", "bias")
            ),
        )
    ]
    assert len(set(ids)) == len(ids)
    assert {words_width(one) for one in ids} == {2}
    assert {without_words(one) for one in ids} == {base.reader_id}
    assert WordsReader(base, words(2)).reader_id == ids[0]
    assert ids[0] == base.reader_id + words(2).suffix


@pytest.mark.parametrize("reader_id", ["hash@8", "words@16", "pair(hash@8)+stance(cue)", ""])
def test_an_id_without_words_is_its_own(reader_id: str) -> None:
    assert words_width(reader_id) == 0
    assert without_words(reader_id) == reader_id
    assert without_words(reader_id + words(2, 3).suffix) == reader_id
    assert words_width(reader_id + words(2, 3).suffix) == 5


def test_pinned_is_the_reader_with_words_or_the_base(base: Reader, reader: WordsReader) -> None:
    assert reader.pinned(reader.reader_id) is reader
    assert reader.pinned(base.reader_id) is base
    assert reader.newest() is base
    assert reader.base is base
    assert base.base is base
    assert base.extend(base.read_many(TEXTS), REQUESTS).shape == (4, 8)


def test_pinned_finds_the_variants_of_the_base(minilm: MiniLMReader) -> None:
    plain = minilm.reader_id.removesuffix(IN_PASSAGES)
    reader = WordsReader(minilm, words(2))
    assert reader.pinned(plain).reader_id == plain
    assert WordsReader(minilm.pinned(plain), words(2)).newest().reader_id == plain + IN_PASSAGES
    assert reader.cuts_after == minilm.cuts_after
    cutting = WordsReader(minilm.pinned(plain), words(2))
    assert cutting.cuts_after is not None
    assert cutting.count_cut(["late " * 400, "Short."]) == 1


def test_claims_are_read_where_the_base_reads_them(base: Reader) -> None:
    assert not WordsReader(base, words(2)).uses_claim
    pair = WordsReader(PairReader(base), words(2))
    assert pair.uses_claim
    assert pair.read("Paid late.", "Paid.").shape == (4 * 8 + 2,)


def test_a_reader_without_words_stays_itself(base: Reader) -> None:
    assert with_words(base, None) is base
    assert with_words(base, words(2)).base is base


def test_text_and_stance_are_found_before_the_words() -> None:
    inner = HashReader(6)
    for plain in (inner, PairReader(inner), PairReader(inner, CueReader())):
        reader = WordsReader(plain, words(2, 3))
        assert text_part(reader.reader_id, reader.width) == text_part(plain.reader_id, plain.width)
        assert stance_start(reader.reader_id, reader.width) == stance_start(
            plain.reader_id, plain.width
        )
    assert reads_stance(reader.reader_id)
    assert stance_start(reader.reader_id, reader.width) == reader.width - 5 - len(STANCES)
    features = reader.read_many([ReadRequest("indeed so", "It is so.")])
    np.testing.assert_array_equal(
        features[:, text_part(reader.reader_id, reader.width)], inner.read_many(["indeed so"])
    )
