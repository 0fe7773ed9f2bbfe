from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_stage_one import staged
from training_examples import SMALL, made_up

from lpf.errors import TrainingError
from lpf.training import search
from lpf.training.history import Epoch, SeedHistory, ranked, spread
from lpf.training.search import CHECKPOINT, RESULT, search_id, search_seeds
from lpf.training.stage_one import EpochCallback, StageOneState

CONFIG = replace(SMALL, patience=3, max_epochs=10)


class Stopped(KeyboardInterrupt):
    """Raised within a run, as Ctrl-C would be."""


def stop_after(epochs: int) -> EpochCallback:
    def watch(done: int, total: int, state: StageOneState) -> None:
        if done == epochs:
            raise Stopped

    return watch


@pytest.mark.parametrize("epochs", [1, 4, 7])
def test_an_interrupted_search_goes_on_to_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, epochs: int
) -> None:
    monkeypatch.setattr(search, "CHECKPOINT_SECONDS", 0.0)
    stage = staged(made_up(noise=1.5), (1, 2, 3), CONFIG)
    whole = search_seeds(stage, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt, match="continues" if epochs > 1 else "starts again"):
        search_seeds(stage, tmp_path / "cut", stop_after(epochs))
    assert (tmp_path / "cut" / CHECKPOINT).exists() == (epochs > 1)
    resumed = search_seeds(stage, tmp_path / "cut")
    assert not (tmp_path / "cut" / CHECKPOINT).exists()
    assert resumed.histories == whole.histories
    for name, tensor in whole.tensors.items():
        np.testing.assert_array_equal(tensor, resumed.tensors[name])


def test_a_search_that_is_done_is_read_not_trained_again(tmp_path: Path) -> None:
    stage = staged(made_up(), (1, 2), CONFIG)
    first = search_seeds(stage, tmp_path)

    def never(done: int, total: int, state: StageOneState) -> None:
        raise AssertionError("trained again")

    again = search_seeds(stage, tmp_path, never)
    assert again.histories == first.histories
    np.testing.assert_array_equal(
        again.tensors["encoder.mu.weight"], first.tensors["encoder.mu.weight"]
    )


def test_a_damaged_checkpoint_is_named(tmp_path: Path) -> None:
    tmp_path.joinpath(CHECKPOINT).write_bytes(b"not a checkpoint")
    with pytest.raises(TrainingError, match=r"checkpoint\.safetensors is damaged"):
        search_seeds(staged(made_up(), (1,), CONFIG), tmp_path)


def test_a_result_of_another_version_is_refused(tmp_path: Path) -> None:
    tmp_path.joinpath(RESULT).write_text('{"format": "lpf-search/0"}')
    with pytest.raises(TrainingError, match="this version reads"):
        search_seeds(staged(made_up(), (1,), CONFIG), tmp_path)


def test_a_search_is_named_by_all_it_depends_on() -> None:
    base = search_id(data="a", seeds=[1], config={"beta": 0.01})
    assert base == search_id(config={"beta": 0.01}, seeds=[1], data="a")
    assert base != search_id(data="a", seeds=[1], config={"beta": 0.02})


def history(seed: int, *rows: tuple[float, float]) -> SeedHistory:
    epochs = tuple(Epoch(0, 0, 0, 0, loss, loss, 0, accuracy, 1) for loss, accuracy in rows)
    return SeedHistory(seed, epochs, True)


def test_seeds_are_ranked_by_accuracy_then_loss_of_their_best_epoch() -> None:
    seeds = [
        history(1, (0.5, 0.80), (0.6, 0.99)),
        history(2, (0.5, 0.85)),
        history(3, (0.4, 0.85)),
    ]
    assert [seeds[place].seed for place in ranked(seeds)] == [3, 2, 1]
    found = spread(seeds, "validation_accuracy")
    assert found.selected == 0.85
    assert found.mean == pytest.approx(0.8333333)
    assert found.sd == pytest.approx(0.0288675)


def test_a_history_comes_back_from_json() -> None:
    one = history(1, (0.5, 0.8), (0.4, 0.9))
    assert SeedHistory.from_dict(one.to_dict()) == one
    assert one.best_epoch == 2
