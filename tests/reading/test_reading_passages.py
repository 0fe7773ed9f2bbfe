"""Long texts: all of them counts, short ones stay as they were, memory is bounded."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lpf.reading import MiniLMReader, PairReader, open_reader
from lpf.reading.passages import (
    CHARACTERS_IN_WINDOW,
    LONGEST_WORD,
    combined,
    passages,
    pieces,
    token_ids,
    windows,
)
from lpf.reading.reader import IN_PASSAGES

GOOD = "The plant passed every inspection this year. "
BAD = "The auditors found forged certificates and toxic waste. "
SHORT = ["Yes.", "word " * 254, " " * 30_000 + "The end.", "x" * 30_000 + " end", "漢字 かな"]
# Characters at which a careless cut would change the tokens.
ODD = "ab'# [MASK]é\u0301漢ก\x0b\u00a0\n"


def test_the_end_of_a_long_text_counts(minilm: MiniLMReader, cutting: MiniLMReader) -> None:
    good, mixed = GOOD * 80, GOOD * 40 + BAD * 40
    beginning_only = cutting.read_many([good, mixed])
    np.testing.assert_allclose(*beginning_only, atol=1e-6)
    all_good, both = minilm.read_many([good, mixed])
    bad = minilm.read(BAD)
    assert bad @ both > bad @ all_good + 0.1
    np.testing.assert_allclose(np.linalg.norm(both), 1.0, atol=1e-6)


def test_short_texts_have_the_same_features_bit_for_bit(
    minilm: MiniLMReader, cutting: MiniLMReader
) -> None:
    np.testing.assert_array_equal(minilm.read_many(SHORT), cutting.read_many(SHORT))
    # Also next to long texts, which are batched apart.
    long = GOOD * 100
    np.testing.assert_array_equal(
        minilm.read_many([*SHORT, long])[:-1], cutting.read_many([*SHORT, long])[:-1]
    )


def test_one_token_more_than_a_passage_makes_two(minilm: MiniLMReader) -> None:
    text = "word " * 255
    halves = minilm.read_many(["word " * 128, "word " * 127])
    np.testing.assert_allclose(minilm.read(text), combined(halves, [128, 127]), atol=1e-6)


def test_the_id_says_how_long_texts_are_read(minilm: MiniLMReader, cutting: MiniLMReader) -> None:
    assert minilm.reader_id == cutting.reader_id + IN_PASSAGES
    assert minilm.cuts_after is None
    assert cutting.pinned(minilm.reader_id).reader_id == minilm.reader_id
    assert minilm.pinned("another reader") is minilm
    pair = PairReader(minilm)
    assert pair.pinned(f"pair({cutting.reader_id})").reader_id == f"pair({cutting.reader_id})"
    assert pair.pinned("pair(another)") is pair


def test_readers_read_passages_unless_told_otherwise(cache_dir: Path) -> None:
    assert open_reader(cache_dir=cache_dir).reader_id.endswith(IN_PASSAGES)
    plain = open_reader(cache_dir=cache_dir, passages=False)
    # The id that earlier versions gave, which models and stores pin.
    assert plain.reader_id == (
        "all-MiniLM-L6-v2@53aa51172d142c89;precision=float32;max_length=256;graph=1"
    )


def test_progress_counts_long_texts_once(minilm: MiniLMReader) -> None:
    seen: list[int] = []
    minilm.read_many([GOOD * 60, "Yes.", GOOD * 90], progress=lambda done, _: seen.append(done))
    assert seen == sorted(set(seen))
    assert seen[-1] == 3


@given(st.text(ODD, max_size=200), st.integers(1, 30))
def test_pieces_are_the_text(text: str, size: int) -> None:
    assert "".join(pieces(text, size)) == text


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(ODD, max_size=120), size=st.integers(1, 20))
def test_pieces_have_the_tokens_of_the_text(minilm: MiniLMReader, text: str, size: int) -> None:
    whole = minilm._token_ids([text])[0]
    parts = minilm._token_ids(list(pieces(text, size)))
    assert [one for part in parts for one in part] == whole


def test_a_word_without_end_is_cut() -> None:
    parts = list(pieces("x" * (2 * LONGEST_WORD + 5)))
    assert max(map(len, parts)) <= LONGEST_WORD


def test_only_as_much_is_tokenised_as_is_needed() -> None:
    asked: list[str] = []

    def tokenise(texts: list[str]) -> list[list[int]]:
        asked.extend(texts)
        return [[1] * len(text.split()) for text in texts]

    assert len(token_ids("word " * 100_000, tokenise, 254)) == 254
    assert sum(map(len, asked)) < 50_000


@given(st.integers(1, 3000), st.integers(1, 300))
def test_passages_are_nearly_equal_and_complete(count: int, most: int) -> None:
    parts = passages(np.arange(count), most)
    sizes = [len(part) for part in parts]
    assert np.concatenate(parts).tolist() == list(range(count))
    assert max(sizes) <= most
    assert max(sizes) - min(sizes) <= 1


@given(st.lists(st.integers(0, CHARACTERS_IN_WINDOW), max_size=30), st.integers(1, 10))
def test_windows_cover_all_items_in_order(lengths: list[int], most: int) -> None:
    found = list(windows(lengths, most))
    places = [place for window in found for place in range(window.start, window.stop)]
    assert places == list(range(len(lengths)))
    for window in found:
        assert window.stop - window.start <= most
        several = window.stop - window.start > 1
        assert not several or sum(lengths[window]) <= CHARACTERS_IN_WINDOW


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in kilobytes on Linux only")
def test_reading_the_longest_text_needs_little_memory(cache_dir: Path) -> None:
    """Without passages, so that it is fast: tokenising was what needed gigabytes."""
    script = (
        "import resource; from lpf.reading import MiniLMReader; "
        f"reader = MiniLMReader(cache_dir={str(cache_dir)!r}, passages=False); "
        "reader.read('warm'); before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; "
        "text = 'The auditors found nothing. ' * 37_000; "
        "reader.read(text); "
        "tokens = reader.pinned(reader.reader_id + ';passages=1')._tokenise([text], 0); "
        "assert len(tokens[0]) > 180_000, len(tokens[0]); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)"
    )
    found = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert int(found.stdout) < 200_000
