"""Tuned readers: stored with their own hash, checked when they are opened, and never mixed up."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.reading import PairReader, ReadRequest, StanceReader, is_pair
from lpf.reading.pair import reads_stance
from lpf.reading.stance import HIDDEN_WIDTH
from lpf.reading.tuned import (
    CARD_FILE,
    WEIGHTS_FILE,
    TunedReader,
    TunedStanceReader,
    with_tuned,
)
from lpf.training.pair_encoder import PairBatch, load_pair_encoder
from tuned_models import tiny_reader

MADE = {"tuned_on": {"entities": 3, "pairs": 4}, "predicates": ["verdict"], "settings": {}}
ITEM = ReadRequest("the box was painted red", "the box is red")


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PairReader:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def tuned(reader: PairReader) -> TunedReader:
    stance = reader.stance
    assert isinstance(stance, StanceReader)
    weights = stance.weights()
    weights["stance.bias"] = weights["stance.bias"] + np.float32([2.0, 0.0, -1.0])
    return TunedReader.pack(weights, stance, MADE)


def stored(tuned: TunedReader, folder: Path) -> Path:
    folder.mkdir()
    for name, content in tuned.files().items():
        (folder / name).write_bytes(content)
    return folder


def test_a_tuned_reader_reads_with_its_own_weights(reader: PairReader, tuned: TunedReader) -> None:
    changed = with_tuned(reader, tuned)
    before, after = reader.read_many([ITEM]), changed.read_many([ITEM])
    assert before.shape == after.shape
    assert np.array_equal(before[:, :-3], after[:, :-3])
    assert after[0, -3:] - before[0, -3:] == pytest.approx([2.0, 0.0, -1.0], abs=1e-3)
    assert reads_stance(changed.reader_id)
    assert is_pair(changed.reader_id)
    assert tuned.digest[:16] in changed.reader_id


def test_torch_and_onnx_read_the_same_from_the_stored_weights(tuned: TunedReader) -> None:
    from lpf.reading.stored_weights import unpack_weights

    reader = TunedStanceReader(tuned, threads=1)
    network = load_pair_encoder(unpack_weights(tuned.files()[WEIGHTS_FILE])).eval()
    with torch.no_grad():
        hidden, stances = network(PairBatch.of(reader.token_pairs([ITEM])))
    (row,) = reader.read_many([ITEM])
    assert row[:HIDDEN_WIDTH] == pytest.approx(hidden[0].numpy(), abs=1e-4)
    assert row[HIDDEN_WIDTH:] == pytest.approx(stances[0].numpy(), abs=1e-4)


def test_the_same_tuning_gives_the_same_files(reader: PairReader, tuned: TunedReader) -> None:
    stance = reader.stance
    assert isinstance(stance, StanceReader)
    weights = stance.weights()
    weights["stance.bias"] = weights["stance.bias"] + np.float32([2.0, 0.0, -1.0])
    assert TunedReader.pack(weights, stance, MADE).files() == tuned.files()
    other = TunedReader.pack(weights, stance, MADE | {"settings": {"rate": 1.0}})
    assert other.digest != tuned.digest


def test_a_stored_reader_is_the_same_and_says_what_it_is(
    tuned: TunedReader, tmp_path: Path
) -> None:
    folder = stored(tuned, tmp_path / "reader")
    loaded = TunedReader.load(folder, tuned.digest)
    assert loaded.digest == tuned.digest
    assert loaded.in_memory().files() == tuned.files()
    card = json.loads((folder / CARD_FILE).read_bytes())
    assert card["tuned_on"] == MADE["tuned_on"]
    assert card["untuned"]["name"] == "tiny-stance"


@pytest.mark.parametrize("name", [CARD_FILE, WEIGHTS_FILE, "tokenizer.json"])
def test_a_changed_file_is_refused_by_name(tuned: TunedReader, tmp_path: Path, name: str) -> None:
    folder = stored(tuned, tmp_path / "reader")
    content = bytearray((folder / name).read_bytes())
    content[len(content) // 2] ^= 1
    (folder / name).write_bytes(content)
    with pytest.raises(ReaderIntegrityError, match=name):
        TunedStanceReader(TunedReader.load(folder, tuned.digest), threads=1).read_many([ITEM])


def test_a_missing_reader_is_named(tuned: TunedReader, tmp_path: Path) -> None:
    with pytest.raises(ReaderUnavailableError, match=CARD_FILE):
        TunedReader.load(tmp_path, tuned.digest)


def test_other_models_get_the_untuned_reader_back(reader: PairReader, tuned: TunedReader) -> None:
    changed = with_tuned(reader, tuned)
    assert changed.pinned(changed.reader_id).reader_id == changed.reader_id
    assert changed.pinned(reader.reader_id).reader_id == reader.reader_id
    assert changed.newest().reader_id == reader.reader_id
    assert with_tuned(changed, tuned) is changed
    assert with_tuned(reader, None) is reader


def test_a_tuned_reader_needs_no_untuned_one(reader: PairReader, tuned: TunedReader) -> None:
    alone = with_tuned(PairReader(reader._inner), tuned)
    assert alone.reader_id == with_tuned(reader, tuned).reader_id
    assert np.array_equal(alone.read_many([ITEM]), with_tuned(reader, tuned).read_many([ITEM]))
