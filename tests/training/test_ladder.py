"""The ladder: which rungs are tried within a budget, which one wins, and that the same run again
takes the same decisions."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from filelock import FileLock

from lpf.datasets import assign_splits
from lpf.errors import TrainingError
from lpf.reading import PairReader
from lpf.reading.fitted_words import without_words
from lpf.reading.tuned import TunedReader, with_tuned
from lpf.training import (
    Examples,
    Trained,
    Trainer,
    TrainingConfig,
    ladder,
    make_examples,
    read_features,
)
from lpf.training.reader_choice import ReaderChoice, RungOutcome
from tuned_models import coloured, quick_ladder, tiny_reader

pytestmark = pytest.mark.usefixtures("one_thread")
CONFIG = TrainingConfig(max_epochs=2, hidden=(8,), latent_width=4, aggregator=None, members=1)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> PairReader:
    return tiny_reader(tmp_path_factory.mktemp("reader"))


@pytest.fixture(scope="module")
def examples(reader: PairReader) -> Examples:
    dataset = assign_splits(coloured(80), "verdict", seed=1)
    return make_examples(dataset, read_features(dataset, reader))


def train(
    examples: Examples,
    reader: PairReader,
    folder: Path | None = None,
    config: TrainingConfig = CONFIG,
    steps: list[str] | None = None,
) -> Trained:
    on_status = None if steps is None else steps.append
    return Trainer(
        examples,
        reader.reader_id,
        ("verdict",),
        config,
        (1,),
        folder,
        on_status=on_status,
        reader=reader,
    ).run()


def tried(gain: float, error: float, name: str = "top") -> RungOutcome:
    """Losses of two entities whose gains have this mean and standard error."""
    untuned = np.array([0.5, 0.5])
    return RungOutcome.tried(name, 1.0, untuned - gain - np.array([-error, error]), untuned)


def test_a_rung_is_better_beyond_one_standard_error() -> None:
    assert tried(0.1, 0.05).gain == pytest.approx(0.1)
    assert tried(0.1, 0.05).gain_error == pytest.approx(0.05)
    assert tried(0.1, 0.05).is_better
    assert not tried(0.1, 0.2).is_better
    assert not tried(-0.1, 0.0).is_better
    assert not RungOutcome("top", 9.0, skipped="why").is_better


def test_the_lowest_of_the_better_rungs_is_chosen() -> None:
    start = ReaderChoice(0.5)
    assert start.with_rung(tried(0.1, 0.2)).chosen is None
    top = start.with_rung(tried(0.1, 0.01))
    assert top.chosen == "top"
    assert top.with_rung(tried(0.05, 0.01, "all")).chosen == "top"
    assert top.with_rung(tried(0.2, 0.01, "all")).chosen == "all"
    # Lower, but not beyond chance: the first one stays.
    assert top.with_rung(tried(0.2, 0.5, "all")).chosen == "top"
    # A rung that may be better by chance does not stand in the way of one that is better.
    by_chance = start.with_rung(tried(0.3, 0.4))
    assert by_chance.with_rung(tried(0.2, 0.01, "all")).chosen == "all"


def test_few_entities_are_not_tuned_on_and_the_card_says_why(
    examples: Examples, reader: PairReader
) -> None:
    trained = train(examples, reader)
    assert trained.tuned is None
    assert trained.reader_choice is not None
    assert trained.reader_choice.rungs == ()
    assert f"{ladder.FEWEST_LABELS:,}" in (trained.reader_choice.not_tried or "")
    assert any(note.startswith("reader: untuned: ") for note in trained.card.notes)


def test_without_a_budget_nothing_is_tuned(
    examples: Examples, reader: PairReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    trained = train(examples, reader, config=replace(CONFIG, budget=0.0))
    assert trained.reader_choice == ReaderChoice(not_tried="the budget is 0")
    only_networks = train(examples, reader, config=replace(CONFIG, model="networks"))
    assert only_networks.reader_choice is None


def test_rungs_that_do_not_fit_into_the_budget_are_not_started(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    steps: list[str] = []
    trained = train(examples, reader, tmp_path, replace(CONFIG, budget=0.01), steps)
    choice = trained.reader_choice
    assert choice is not None
    assert [one.nll for one in choice.rungs] == [None, None]
    assert all(one.skipped and one.seconds > 0.0 for one in choice.rungs)
    assert choice.chosen is None
    assert not any(step.startswith("tuning") for step in steps)
    assert not list(tmp_path.rglob("weights.safetensors"))


def test_a_tuned_reader_is_part_of_the_model(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    steps: list[str] = []
    trained = train(examples, reader, tmp_path, steps=steps)
    choice, tuned = trained.reader_choice, trained.tuned
    assert choice is not None
    assert tuned is not None
    assert choice.chosen in [one.name for one in ladder.RUNGS]
    assert trained.config.tuned_reader == tuned.digest
    assert trained.is_linear
    assert trained.choice is not None
    assert trained.choice.networks_nll is None
    assert steps.count("training all seeds together") == 1
    assert tuned.digest[:16] in trained.config.reader_id
    assert without_words(trained.config.reader_id) != reader.reader_id
    assert sum(step.startswith("tuning the reader") for step in steps) == 2  # of the first rung
    assert any(tuned.digest in note for note in trained.card.notes)
    # Both halves together are all that is known, and no test entity.
    known = np.flatnonzero([entity.split != "test" for entity in examples.dataset])
    assert tuned.card["tuned_on"]["entities"] == len(known)
    assert len(tuned.card["halves"]) == 2

    again: list[str] = []
    repeated = train(examples, reader, tmp_path, steps=again)
    assert not any(step.startswith("tuning the reader") for step in again)
    assert repeated.card == trained.card
    assert repeated.config == trained.config
    assert all(np.array_equal(repeated.tensors[k], trained.tensors[k]) for k in trained.tensors)


def test_decisions_follow_the_times_that_were_kept(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    train(examples, reader, tmp_path, replace(CONFIG, budget=0.01))
    (record,) = tmp_path.rglob(ladder.RECORD)
    kept = json.loads(record.read_bytes())
    assert kept["taken"] == {}
    first, second = (one.name for one in ladder.RUNGS)
    kept |= {"before": 10.0, "fit": 4.0, "reading": 6.0, "one_pass": 30.0}
    record.write_text(json.dumps(kept))
    choice = train(examples, reader, tmp_path, replace(CONFIG, budget=60.0)).reader_choice
    assert choice is not None  # 40 seconds are left: one pass, but not two
    assert [one.skipped is None for one in choice.rungs] == [False, True]
    assert choice.chosen == second
    choice = train(examples, reader, tmp_path, replace(CONFIG, budget=85.0)).reader_choice
    assert choice is not None
    assert [one.name for one in choice.rungs] == [first]


def test_a_budget_for_part_of_the_entities_tunes_on_part_of_them(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    train(examples, reader, tmp_path, replace(CONFIG, budget=0.01))
    (record,) = tmp_path.rglob(ladder.RECORD)
    name = ladder.RUNGS[-1].name
    times = {"before": 10.0, "fit": 4.0, "reading": 6.0, "taken": {}, "one_pass": 100.0}
    record.write_text(json.dumps(times))
    config = replace(CONFIG, budget=99.0)  # 79 are left for tuning: 75 % of the entities
    trained = train(examples, reader, tmp_path, config)
    choice, tuned = trained.reader_choice, trained.tuned
    assert choice is not None
    assert tuned is not None
    assert choice.rungs[-1].share == 0.75
    parts = ladder.halves(examples.dataset)
    assert tuned.card["tuned_on"]["entities"] == sum(round(0.75 * len(one)) for one in parts)
    assert "75%" in choice.describe()
    assert list(json.loads(record.read_bytes())["taken"]) == [f"{name} 0.75"]
    steps: list[str] = []
    assert train(examples, reader, tmp_path, config, steps).config == trained.config
    assert not any(step.startswith("tuning the reader") for step in steps)
    whole = train(examples, reader, tmp_path, replace(CONFIG, budget=1000.0), steps)
    assert sum(step.startswith("tuning the reader") for step in steps) == 2
    assert whole.tuned is not None
    assert whole.tuned.digest != tuned.digest
    # A reader that was tuned on all entities is used whatever the budget is.
    again = train(examples, reader, tmp_path, config)
    assert again.tuned is not None
    assert again.tuned.digest == whole.tuned.digest


def test_a_second_process_waits_for_the_first_and_uses_its_reader(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    train(examples, reader, tmp_path, replace(CONFIG, budget=0.01))
    (record,) = tmp_path.rglob(ladder.RECORD)
    steps: list[str] = []
    with FileLock(record.parent / ladder.LOCK):
        other = Thread(target=train, args=(examples, reader, tmp_path, CONFIG, steps))
        other.start()
        while not any(step.startswith("waiting") for step in steps):
            assert other.is_alive()
            time.sleep(0.05)
        assert not any(step.startswith("tuning the reader") for step in steps)
    other.join()
    assert any(step.startswith("tuning the reader") for step in steps)


def test_repetitions_with_other_seeds_share_the_tuned_reader(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    steps: list[str] = []

    def repetition(seed: int) -> Trained:
        return Trainer(
            examples,
            reader.reader_id,
            ("verdict",),
            CONFIG,
            (seed,),
            on_status=steps.append,
            reader=reader,
            tuning=tmp_path / "tuning",
        ).run()

    first = repetition(1)
    assert sum(step.startswith("tuning the reader") for step in steps) == 2
    steps.clear()
    second = repetition(2)
    assert not any(step.startswith("tuning the reader") for step in steps)
    assert first.config.tuned_reader == second.config.tuned_reader is not None
    assert first.config.seeds != second.config.seeds


@pytest.mark.parametrize(
    ("seconds", "whole", "share"),
    [(50.0, 40.0, 1.0), (39.9, 40.0, 0.95), (20.0, 40.0, 0.5), (1.0, 40.0, 0.0), (-5.0, 0.0, 0.0)],
)
def test_what_fits_into_the_time(seconds: float, whole: float, share: float) -> None:
    assert ladder.affordable_share(seconds, whole) == pytest.approx(share)


def test_what_was_kept_is_refused_by_name_if_it_is_damaged(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    short = replace(CONFIG, budget=0.01)
    train(examples, reader, tmp_path, short)
    (record,) = tmp_path.rglob(ladder.RECORD)
    record.write_text("{")
    with pytest.raises(TrainingError, match=ladder.RECORD):
        train(examples, reader, tmp_path, short)


def test_items_with_different_claims_are_not_tuned_on(
    examples: Examples, reader: PairReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick_ladder(monkeypatch)
    first, *rest = examples.dataset.entities
    dataset = replace(examples.dataset, entities=(replace(first, claim=None), *rest))
    trained = train(replace(examples, dataset=dataset), reader)
    assert trained.reader_choice is not None
    assert "different claims" in (trained.reader_choice.not_tried or "")


def test_halves_keep_groups_together_and_leave_out_test_entities(examples: Examples) -> None:
    dataset = examples.dataset
    first, second = ladder.halves(dataset)
    known = np.flatnonzero([entity.split != "test" for entity in dataset])
    assert sorted([*first, *second]) == known.tolist()
    assert abs(len(first) - len(second)) <= 1
    entities = tuple(
        replace(entity, group_id=f"G{place // 5}") for place, entity in enumerate(dataset)
    )
    grouped = replace(dataset, entities=entities)
    first, second = ladder.halves(grouped)
    names = [{entities[place].group_id for place in half} for half in (first, second)]
    assert not names[0] & names[1]
    assert ladder.halves(grouped)[0].tolist() == first.tolist()


def test_known_entities_are_read_by_the_half_that_does_not_know_them(
    examples: Examples, reader: PairReader, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What each text was read with follows from the readers that are kept beside the record."""
    quick_ladder(monkeypatch)
    seen: list[Examples] = []
    choose = ladder.Ladder.climb

    def watched(self: ladder.Ladder, untuned: ladder.FittedReader) -> object:
        fit = self.fit
        watching = replace(self, fit=lambda read, name: (seen.append(read), fit(read, name))[1])
        return choose(watching, untuned)

    monkeypatch.setattr(ladder.Ladder, "climb", watched)
    train(examples, reader, tmp_path)
    (record,) = tmp_path.rglob(ladder.RECORD)
    first, second = ladder.halves(examples.dataset)
    rung = ladder.RUNGS[0].name.replace(" ", "-")
    for places, knows in ((first, "second-half"), (second, "first-half")):
        folder = record.parent / f"{rung}-{knows}"
        done = json.loads((folder / ladder.DONE).read_bytes())
        tuned = TunedReader.load(folder, done["reader"])
        stance = with_tuned(reader, tuned)
        assert isinstance(stance, PairReader)
        assert stance.stance is not None
        dataset = examples.dataset.select(places.tolist())
        expected = read_features(dataset, stance.stance)
        rows = examples.rows(places)
        np.testing.assert_allclose(
            seen[0].features[rows, -expected.shape[1] :], expected, atol=1e-5
        )
