"""The default reader: values of the model card, order, batches, errors."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpf.errors import ConfigError, EvidenceError
from lpf.reading import MiniLMReader, ReadRequest
from lpf.reading.minilm import pad, run_batches, token_batches

CARD = [
    "That is a happy person",
    "That is a happy dog",
    "That is a very happy person",
    "Today is a sunny day",
]
TEXTS = [
    *CARD,
    "Yes",
    "Die Prüfung fand am 3. März in 東京 statt, naïve café — 👍.",
    "The inspector found no violation at the plant. " * 60,
    "Revenue fell by 12.5 % (from $3.1m to $2.7m); see https://example.org/report?id=7.",
]


def test_similarities_of_the_model_card_are_reproduced(minilm: MiniLMReader) -> None:
    first, *others = minilm.read_many(CARD)
    assert [f"{first @ other:.4f}" for other in others] == ["0.6946", "0.9429", "0.2569"]


def test_features_are_float32_of_length_one(minilm: MiniLMReader) -> None:
    features = minilm.read_many(TEXTS)
    assert features.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1.0, atol=1e-6)


@pytest.mark.parametrize("precision", ["minilm", "minilm_int8"])
def test_features_do_not_depend_on_the_batch(
    precision: str, request: pytest.FixtureRequest
) -> None:
    reader: MiniLMReader = request.getfixturevalue(precision)
    together = reader.read_many(TEXTS * 5)
    alone = np.stack([reader.read(text) for text in TEXTS])
    np.testing.assert_allclose(together, np.tile(alone, (5, 1)), atol=1e-6, rtol=0)


@settings(
    max_examples=8,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(order=st.permutations(range(len(TEXTS))))
def test_rows_follow_the_order_of_the_items(minilm: MiniLMReader, order: list[int]) -> None:
    texts = [TEXTS[index] for index in order]
    np.testing.assert_allclose(
        minilm.read_many(texts), minilm.read_many(TEXTS)[order], atol=1e-6, rtol=0
    )


def test_features_do_not_depend_on_the_number_of_threads(minilm: MiniLMReader, cache_dir) -> None:
    single = MiniLMReader(cache_dir=cache_dir, threads=1)
    np.testing.assert_array_equal(single.read_many(TEXTS), minilm.read_many(TEXTS))


def test_without_passages_a_text_is_cut_at_max_length(cutting: MiniLMReader, cache_dir) -> None:
    long = "word " * 254  # and the two special tokens make 256
    np.testing.assert_array_equal(cutting.read(long), cutting.read(long + "different end"))
    assert cutting.cuts_after == 256
    assert cutting.count_cut(["short", long, long + "different end"]) == 1
    wider = MiniLMReader(cache_dir=cache_dir, max_length=512, passages=False)
    assert wider.reader_id != cutting.reader_id
    assert not np.allclose(wider.read(long), wider.read(long + "different end"), atol=1e-4)


def test_claim_and_fields_are_ignored(minilm: MiniLMReader) -> None:
    assert not minilm.uses_claim
    assert not minilm.uses_fields
    plain, with_claim = minilm.read_many(["Yes", ReadRequest("Yes", "Was it?", {"score": 1})])
    np.testing.assert_allclose(plain, with_claim, atol=1e-7)


def test_progress_counts_up_to_the_total(minilm: MiniLMReader) -> None:
    seen: list[tuple[int, int]] = []
    minilm.read_many(TEXTS * 10, progress=lambda done, total: seen.append((done, total)))
    done = [pair[0] for pair in seen]
    assert done == sorted(set(done))
    assert seen[-1] == (80, 80)


def test_an_error_in_the_progress_callback_reaches_the_caller(minilm: MiniLMReader) -> None:
    def interrupt(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        minilm.read_many(TEXTS * 10, progress=interrupt)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("", "empty"),
        (" \n\t", "empty"),
        ("\x00\x01", "no readable character"),
        ("a\ud800b", "not valid Unicode"),
        (None, "must be a string, got NoneType"),
        (b"bytes", "must be a string, got bytes"),
    ],
)
def test_an_unreadable_item_is_named_by_its_index(minilm: MiniLMReader, bad, reason: str) -> None:
    with pytest.raises(EvidenceError, match=rf"items\[1\]\.text: .*{reason}"):
        minilm.read_many(["fine", bad, "fine"])


def test_one_text_in_place_of_a_list_is_rejected(minilm: MiniLMReader) -> None:
    with pytest.raises(EvidenceError, match="use read"):
        minilm.read_many("a text")


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"precision": "int4"}, "precision: must be one of"),
        ({"max_length": 513}, "max_length: .* 3 to 512, got 513"),
        ({"max_length": 2}, "max_length: .* 3 to 512, got 2"),
        ({"threads": 0}, "threads: .* got 0"),
    ],
)
def test_a_setting_out_of_range_is_rejected(cache_dir, setting: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        MiniLMReader(cache_dir=cache_dir, **setting)


def test_int8_features_are_close_and_have_their_own_reader_id(
    minilm: MiniLMReader, minilm_int8: MiniLMReader
) -> None:
    cosines = (minilm.read_many(TEXTS) * minilm_int8.read_many(TEXTS)).sum(axis=1)
    # Wider than the figure in the docs: a CPU without VNNI rounds a little differently.
    assert cosines.min() > 0.97
    assert "precision=int8" in minilm_int8.reader_id
    assert "precision=float32" in minilm.reader_id


@given(st.lists(st.integers(3, 300), max_size=60), st.integers(1, 600))
def test_batches_contain_every_item_once_within_the_budget(lengths: list[int], budget: int) -> None:
    batches = token_batches(lengths, budget)
    assert sorted(index for batch in batches for index in batch) == list(range(len(lengths)))
    for batch in batches:
        padded = len(batch) * max(lengths[index] for index in batch)
        assert padded <= budget or len(batch) == 1


def test_padding_is_zeros_on_the_right() -> None:
    ids, lengths = pad([[5, 6, 7], [8]])
    np.testing.assert_array_equal(ids, [[101, 5, 6, 7, 102], [101, 8, 102, 0, 0]])
    np.testing.assert_array_equal(lengths, [5, 3])


def test_an_error_on_a_worker_reaches_the_caller() -> None:
    def work(batch: list[int]) -> None:
        raise RuntimeError(f"batch {batch}")

    with pytest.raises(RuntimeError, match="batch"):
        list(run_batches(work, [[0], [1]], threads=2))
