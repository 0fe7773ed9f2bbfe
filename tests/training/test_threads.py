"""Training uses one thread of BLAS and torch, and gives the others back."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from training_examples import LEVEL, OUTCOME, SMALL, made_up

from lpf.errors import DatasetError
from lpf.factors.blocks import for_blocks
from lpf.model.artefact import load_model
from lpf.training import Trainer, train_head, train_small
from lpf.training.threads import one_thread
from thread_counts import threads, two_threads

SEEDS = (1, 2)


@pytest.fixture(autouse=True)
def two_of_each() -> Iterator[None]:
    with two_threads():
        yield


@pytest.mark.parametrize("model", ["networks", "best"])
def test_training_uses_one_thread(model: str) -> None:
    seen: dict[str, set[int]] = {}
    config = replace(SMALL, model=model)
    trainer = Trainer(
        made_up(), "hash", ("level",), config, SEEDS, on_status=lambda one: _note(seen, one)
    )
    trainer.run()
    assert len(seen) >= 3
    assert set().union(*seen.values()) == {1}
    assert threads() == {2}


def test_training_on_few_entities_uses_one_thread() -> None:
    seen: dict[str, set[int]] = {}
    few = made_up(12, splits=False)
    train_small(few, "hash", ("level",), SMALL, SEEDS, on_status=lambda one: _note(seen, one))
    assert set().union(*seen.values()) == {1}
    assert threads() == {2}


def test_adding_a_head_uses_one_thread(tmp_path: Path) -> None:
    both = made_up(predicates=(LEVEL, OUTCOME))
    version = Trainer(both, "hash", ("level",), SMALL, SEEDS).run().save(tmp_path)
    seen: dict[str, set[int]] = {}
    train_head(
        load_model(tmp_path / version), both, "outcome", SMALL, lambda *epoch: _note(seen, "epoch")
    )
    assert seen == {"epoch": {1}}
    assert threads() == {2}


def test_a_training_run_that_fails_gives_the_threads_back() -> None:
    with pytest.raises(DatasetError):
        Trainer(made_up(splits=False), "hash", ("level",), SMALL, SEEDS).run()
    assert threads() == {2}


def test_inner_limits_leave_the_outer_one_in_force() -> None:
    with one_thread():
        with one_thread():
            assert threads() == {1}
        for_blocks(lambda block: None, 10, 2)
        assert threads() == {1}
    assert threads() == {2}


def test_two_trainings_at_once_restore_what_was_there_before_both() -> None:
    """The second begins while the first holds the limit, and ends after it."""
    inside, first_left = threading.Event(), threading.Event()
    seen: list[set[int]] = []

    def second() -> None:
        with one_thread():
            inside.set()
            first_left.wait(10)
            seen.append(threads())
        seen.append(threads())

    other = threading.Thread(target=second)
    with one_thread():
        other.start()
        assert inside.wait(10)
    first_left.set()
    other.join(10)
    assert seen == [{1}, {2}]
    assert threads() == {2}


def test_blocks_of_several_threads_give_the_threads_back() -> None:
    """The first caller is still alive, and not the last to leave."""
    inside, first_left = threading.Event(), threading.Event()

    def second() -> None:
        def work(block: slice) -> None:
            inside.set()
            first_left.wait(10)

        for_blocks(work, 2, 1)

    other = threading.Thread(target=second)

    def work(block: slice) -> None:
        if block.start == 0:
            other.start()

    for_blocks(work, 2, 1)
    first_left.set()
    other.join(10)
    assert inside.is_set()
    assert threads() == {2}


def _note(seen: dict[str, set[int]], step: str) -> None:
    seen.setdefault(step, set()).update(threads())
