"""Hashed n-grams: rows depend on their text only, on every machine."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lpf.reading import ReadRequest
from lpf.reading.lexical import (
    BUCKETS,
    HASHED,
    MOST_CHARACTERS,
    OVERLAP,
    OVERLAP_WEIGHT,
    PARTS,
    Part,
    inverse_frequencies,
    ngram_counts,
    part_range,
    weighted_rows,
)

TEXTS = st.lists(st.text(max_size=40), min_size=1, max_size=8)
CHARACTERS_OF_AUDIT = [
    *(723, 1557, 5232, 5936, 6793, 8558, 11858, 12260, 14647, 14701, 15331, 15959),
]
SENTENCE = "The audit found forged invoices, and the audit was late."


def dense(text: str, claim: str | None = None) -> np.ndarray:
    return ngram_counts([ReadRequest(text, claim)]).toarray()[0]


def of_part(row: np.ndarray, part: Part) -> np.ndarray:
    return row[part_range(part)]


@pytest.mark.parametrize(
    ("text", "claim", "part", "places"),
    [
        ("Audit late", None, "words", [12790, 18180, 18907]),
        ("Audit", None, "characters", CHARACTERS_OF_AUDIT),
        ("Чек 東京", None, "words", [3360, 9267, 16728, 28871, 30951]),
        ("late", "Late audit", "claim", [3197, 4726]),
        ("late", "Late audit", "shared", [4726]),
    ],
)
def test_buckets_never_change(text: str, claim: str | None, part: Part, places: list[int]) -> None:
    """Stored weights belong to buckets: a change here makes stored models wrong."""
    assert np.flatnonzero(of_part(dense(text, claim), part)).tolist() == places


def test_the_parts_cover_all_buckets_once() -> None:
    covered = [place for part in PARTS for place in range(BUCKETS)[part_range(part)]]
    assert covered == list(range(BUCKETS))


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.randoms(use_true_random=False))
def test_the_order_of_texts_makes_no_difference(texts: list[str], random: object) -> None:
    order = list(range(len(texts)))
    random.shuffle(order)  # type: ignore[attr-defined]
    rows, shuffled = ngram_counts(texts), ngram_counts([texts[place] for place in order])
    assert (rows[order] != shuffled).nnz == 0


@settings(deadline=None, max_examples=50)
@given(TEXTS)
def test_a_text_alone_has_the_same_row_as_among_others(texts: list[str]) -> None:
    together = ngram_counts(texts)
    for place, text in enumerate(texts):
        assert (together[place] != ngram_counts([text])).nnz == 0


def test_batches_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [SENTENCE, "", SENTENCE * 3, "ok", "我"]
    whole = ngram_counts(texts)
    monkeypatch.setattr("lpf.reading.lexical.BATCH_CHARACTERS", 10)
    assert (ngram_counts(texts) != whole).nnz == 0


def test_case_composition_and_blanks_make_no_difference() -> None:
    expected = dense("cafÉ  late")
    for same in ("CAFE\u0301 LATE", "\tcafé\nlate "):
        np.testing.assert_array_equal(dense(same), expected)


def test_words_and_pairs_are_counted() -> None:
    words = of_part(dense("late late late"), "words")
    assert sorted(words[words > 0].tolist()) == [2.0, 3.0]


def test_characters_stay_within_words() -> None:
    apart, joined = (of_part(dense(text), "characters") for text in ("ab cd", "ab"))
    assert joined.sum() == 3  # " ab", "ab ", " ab "
    assert apart.sum() == 6


def test_chinese_characters_are_words_of_their_own() -> None:
    long, short = of_part(dense("北京很大"), "words"), of_part(dense("北京"), "words")
    assert short.sum() == 3
    assert (long[short > 0] > 0).all()


def test_without_a_claim_its_parts_are_empty() -> None:
    row = dense(SENTENCE)
    assert of_part(row, "claim").sum() == of_part(row, "shared").sum() == 0


def test_shared_words_are_those_of_the_claim() -> None:
    row = dense(SENTENCE, "Was the AUDIT good?")
    assert of_part(row, "claim").sum() == 4
    assert of_part(row, "shared").sum() == 5  # the audit ... the audit was
    assert np.array_equal(of_part(row, "words"), of_part(dense(SENTENCE), "words"))


@pytest.mark.parametrize(
    "text", ["", " \n", ".", "\U0001f600\U0001f44d", "我" * 50, "\ud800 a", "\0"]
)
def test_odd_texts_have_rows(text: str) -> None:
    counts = ngram_counts([text, SENTENCE])
    rows = weighted_rows(counts, inverse_frequencies(counts))
    assert counts.shape == (2, BUCKETS)
    assert np.isfinite(rows.data).all()


def test_no_texts_have_no_rows() -> None:
    assert ngram_counts([]).shape == (0, BUCKETS)


def test_a_huge_text_is_cut() -> None:
    huge = "late audits " * 90_000
    assert len(huge) > 1_000_000
    np.testing.assert_array_equal(dense(huge), dense(huge[:MOST_CHARACTERS]))
    assert dense("x" * 1_000_000).sum() < 5 * MOST_CHARACTERS


def test_rare_buckets_weigh_more() -> None:
    counts = ngram_counts(["late audit", "late order", "late invoice"])
    idf = inverse_frequencies(counts)
    of_late, of_audit = (
        int(dense(word)[part_range("words")].argmax()) for word in ("late", "audit")
    )
    assert idf[of_late] == pytest.approx(1.0)
    assert idf[of_audit] == pytest.approx(1.0 + np.log(2.0))
    assert idf.shape == (BUCKETS,)
    assert (inverse_frequencies(counts, 0.0)[:OVERLAP] == 1.0).all()


@pytest.mark.parametrize(
    ("text", "claim", "share"),
    [
        ("The audit was late.", "Late audit", 1.0),
        ("The audit was good.", "Late audit", 0.5),
        ("good", "Late audit", 0.0),
        ("Late audit", None, 0.0),
        ("Late audit", "", 0.0),
    ],
)
def test_the_overlap_is_the_share_of_the_claim(text: str, claim: str | None, share: float) -> None:
    counts = ngram_counts([ReadRequest("other"), ReadRequest(text, claim), ReadRequest("texts")])
    rows = weighted_rows(counts, inverse_frequencies(counts, 0.0))
    overlaps = rows.toarray()[:, OVERLAP]
    np.testing.assert_allclose(overlaps, [0.0, OVERLAP_WEIGHT * share, 0.0])
    assert rows.has_sorted_indices


def test_each_part_of_a_row_has_length_one() -> None:
    counts = ngram_counts([ReadRequest(SENTENCE, "The audit was late."), ReadRequest("", "")])
    rows = weighted_rows(counts, inverse_frequencies(counts)).toarray()
    for part in HASHED:
        assert np.linalg.norm(rows[0, part_range(part)]) == pytest.approx(1.0, abs=1e-5)
    assert not rows[1].any()


def test_weights_grow_with_the_logarithm_of_the_count() -> None:
    counts = ngram_counts(["late late late audit"])
    row = weighted_rows(counts, np.ones(BUCKETS, np.float32)).toarray()[0]
    of_late, of_audit = (
        int(dense(word)[part_range("words")].argmax()) for word in ("late", "audit")
    )
    assert row[of_late] / row[of_audit] == pytest.approx(1.0 + np.log(3.0), rel=1e-5)


def test_an_idf_of_zero_leaves_a_part_out() -> None:
    counts = ngram_counts([SENTENCE])
    idf = inverse_frequencies(counts)
    idf[part_range("characters")] = 0.0
    row = weighted_rows(counts, idf).toarray()[0]
    assert not of_part(row, "characters").any()
    assert np.linalg.norm(row) == pytest.approx(1.0, abs=1e-5)
