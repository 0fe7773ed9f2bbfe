"""What a workspace trains on: its own labelled evidence, files, and domains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from labelled_workspaces import LEVELS, WordReader, in_splits, line, lines, write_lines
from lpf.datasets import Dataset
from lpf.domains import load_domain, preset
from lpf.errors import (
    ConfigError,
    DatasetError,
    LPFError,
    TrainingError,
    UnknownPredicateError,
    WorkspaceError,
)
from lpf.ingest import ingest_rows
from lpf.schema import Predicate, Schema
from lpf.storage.facts import NewFact
from lpf.training import TrainingConfig
from lpf.workspace import Workspace
from lpf.workspace.circuit import learn_from_rows, read_circuit, with_learned_priors
from lpf.workspace.training_data import own_examples
from lpf.workspace.training_runs import TrainingCallbacks, TrainingPlan
from lpf.workspace.training_sources import TrainingSource, prepare

NOW = datetime.now(UTC)
QUICK = TrainingConfig(hidden=(8,), latent_width=4, max_epochs=3, members=2)
PLAN = TrainingPlan(QUICK, seeds=(1, 2))


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def reads_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())


@pytest.fixture
def space(tmp_path: Path, reads_words: None) -> Iterator[Workspace]:
    schema = Schema((Predicate("level", LEVELS), Predicate("outcome", ("clean", "qualified"))))
    with Workspace.create(tmp_path / "workspace", schema) as made:
        yield made


def ingest(space: Workspace, *rows: tuple[str, str, str | None], predicate: str = "level") -> None:
    """Rows of entity, text and the value it supports."""
    outcome = ingest_rows(
        [
            {"entity_id": entity, "predicate": predicate, "text": text, "supports_value": value}
            for entity, text, value in rows
        ],
        space.evidence,
        space.schema,
        space.reader,
        rejects_folder=space.folder / "rejects",
    )
    assert outcome.added == len(rows)


def know(space: Workspace, entity: str, value: str, days: float = 1, confidence: float = 1) -> None:
    when = NOW - timedelta(days=days)
    space.facts.add([NewFact(entity, "level", value, when, confidence)])


def own_dataset(space: Workspace, predicates: Sequence[str] = ()) -> Dataset:
    return own_examples(space, predicates)[0].dataset


def labels(space: Workspace) -> dict[str, str]:
    return {entity.entity_id: entity.labels["level"] for entity in own_dataset(space)}


def test_an_entity_has_the_value_that_most_of_its_items_support(space: Workspace) -> None:
    ingest(space, ("A", "one", "low"), ("A", "two", "high"), ("A", "three", "high"))
    ingest(space, ("A", "four", None), ("B", "five", "medium"))
    dataset = own_dataset(space)
    assert labels(space) == {"A": "high", "B": "medium"}
    position = {value: place for place, value in enumerate(LEVELS)}
    given = ["low", "high", "high", "high", "medium"]  # the unlabelled one has its entity's
    assert dataset.item_labels("level").tolist() == [position[value] for value in given]


def test_the_newest_fact_with_confidence_half_wins_at_any_age(space: Workspace) -> None:
    ingest(space, ("A", "one", "low"), ("B", "two", "low"), ("C", "three", "low"))
    know(space, "A", "medium", days=4000)
    know(space, "A", "high", days=3000, confidence=0.5)
    know(space, "B", "high", confidence=0.4)
    know(space, "D", "high")  # of whom there is no evidence
    assert labels(space) == {"A": "high", "B": "low", "C": "low"}


def test_ties_and_the_unlabelled_are_left_out_and_counted(space: Workspace) -> None:
    ingest(space, ("A", "one", "low"), ("A", "two", "high"), ("B", "three", None))
    ingest(space, ("C", "four", "low"))
    assert labels(space) == {"C": "low"}
    tie, unlabelled = own_dataset(space).exclusions
    assert tie.startswith("1 entity was left out, since its items support two values")
    assert tie.endswith("(first: A).")
    assert unlabelled == "1 entity has no label and was left out (first: B)."


def test_labels_that_are_not_in_the_schema_are_ignored_and_counted(
    space: Workspace, tmp_path: Path
) -> None:
    ingest(space, ("A", "one", "low"), ("B", "two", "high"), ("C", "three", None))
    know(space, "C", "high")
    settings = space.folder / "lpf.toml"
    narrow = settings.read_text().replace('"low", "medium", "high"', '"low", "medium"')
    space.close()
    settings.write_text(
        narrow.replace(
            "prior = [0.3333333333333333, 0.3333333333333333, 0.3333333333333333]",
            "prior = [0.5, 0.5]",
        )
    )
    with Workspace.open(settings.parent) as narrower:
        assert labels(narrower) == {"A": "low"}
        assert "2 labels are no values" in " ".join(own_dataset(narrower).exclusions)


def test_evidence_counts_for_its_own_predicate_only(space: Workspace) -> None:
    ingest(space, ("A", "one", "low"), ("B", "two", "high"))
    ingest(space, ("A", "three", "clean"), predicate="outcome")
    dataset = own_dataset(space)
    assert [entity.labels for entity in dataset] == [
        {"level": "low"},
        {"level": "high"},
        {"outcome": "clean"},
    ]
    assert [entity.group_id for entity in dataset] == ["A", "B", "A"]
    assert len({entity.entity_id for entity in dataset}) == 3
    assert [entity.entity_id for entity in own_dataset(space, ["level"])] == ["A", "B"]


def test_without_labels_the_error_says_how_to_label(space: Workspace) -> None:
    ingest(space, ("A", "one", None))
    with pytest.raises(TrainingError, match=r"supports_value.*lpf facts add"):
        own_dataset(space)
    with pytest.raises(UnknownPredicateError):
        own_dataset(space, ["colour"])


def test_features_are_the_stored_ones_and_missing_ones_are_read(
    space: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(space, *((f"A{n}", f"word{n} low", "low") for n in range(5)))
    stored = WordReader().read_many([item.text for item in own_dataset(space).items])
    asked: list[int] = []
    read_many = WordReader.read_many

    def counted(self, items, **more):  # type: ignore[no-untyped-def]
        asked.append(len(items))
        return read_many(self, items, **more)

    monkeypatch.setattr(WordReader, "read_many", counted)
    assert np.array_equal(own_examples(space)[0].features, stored)
    assert asked == []
    monkeypatch.setattr(WordReader, "reader_id", "words of another kind")
    assert np.array_equal(own_examples(space)[0].features, stored)
    assert asked == [5]


def test_copies_are_found_with_the_workspaces_threshold(tmp_path: Path, space: Workspace) -> None:
    ingest(space, ("A", "low low low one", "low"), ("A", "low low low low one", "low"))
    assert own_examples(space)[0].groups.tolist() == [0, 0]


def test_files_are_read_under_the_schema_and_split(space: Workspace, tmp_path: Path) -> None:
    file = write_lines(tmp_path / "data.jsonl", lines(60))
    source = TrainingSource(file, ("level",))
    prepared = prepare(space, source)
    dataset = prepared.examples.dataset
    assert not prepared.few
    assert prepared.predicates == ("level",)
    assert [len(dataset.positions(name)) for name in ("train", "validation", "test")] == [42, 9, 9]
    assert dataset.schema is space.schema
    write_lines(file, lines(59))
    few = prepare(space, source)
    assert few.few
    assert {entity.split for entity in few.examples.dataset} == {None}
    write_lines(file, in_splits(lines(36)))
    kept = prepare(space, source).examples.dataset
    assert [entity.split for entity in kept] == [one["split"] for one in in_splits(lines(36))]


TAUGHT = {"label": "low"}
BAD = {
    "unknown value": ([*lines(60), line(61, label="huge")], DatasetError, "line 61.*'huge'"),
    "doubled id": ([*lines(60), line(3)], DatasetError, "line 61.*C0003.*line 4"),
    "no evidence": ([line(n, evidence=[]) for n in range(60)], DatasetError, "both evidence and"),
    "single class": (lines(60, **TAUGHT), DatasetError, "all entities have the value 'low'"),
    "lacking class": (
        in_splits([one for one in lines(36) if one["label"] != "high"]),
        DatasetError,
        "no entity has the value 'high'",
    ),
    "split without a class": (
        [
            {**one, "split": "train"} if one["label"] == "high" else one
            for one in in_splits(lines(36))
        ],
        DatasetError,
        "'validation' has no entity of the value 'high'",
    ),
    "partly split": (
        [*in_splits(lines(36)), line(50)],
        DatasetError,
        "1 of 37 entities have no split",
    ),
}


@pytest.mark.parametrize(("given", "error", "message"), BAD.values(), ids=BAD)
def test_data_that_cannot_be_trained_on_are_refused_before_any_text_is_read(
    given: list, error: type[LPFError], message: str, space: Workspace, tmp_path: Path
) -> None:
    read: list[int] = []
    source = TrainingSource(write_lines(tmp_path / "data.jsonl", given), ("level",))
    with pytest.raises(error, match=message):
        prepare(space, source, lambda done, total: read.append(done))
    assert not read


def test_a_name_that_is_neither_file_nor_domain_is_refused(
    space: Workspace, tmp_path: Path
) -> None:
    with pytest.raises(DatasetError, match=r"neither a file nor one of the domains.*compliance"):
        prepare(space, TrainingSource("complience"))
    with pytest.raises(ConfigError, match="lpf init DIR --domain compliance"):
        prepare(space, TrainingSource("compliance"))
    with pytest.raises(UnknownPredicateError):
        prepare(space, TrainingSource(write_lines(tmp_path / "d.jsonl", lines(60)), ("colour",)))
    labelled = [line(n, label=None, labels={"level": LEVELS[n % 3]}) for n in range(60)]
    file = write_lines(tmp_path / "d.jsonl", labelled)
    with pytest.raises(DatasetError, match="no entity is labelled with 'outcome'"):
        prepare(space, TrainingSource(file, ("level", "outcome")))


def test_own_evidence_becomes_a_model_that_answers(space: Workspace) -> None:
    given = [
        (one["entity_id"], item["text"], one["label"])
        for one in lines(60)
        for item in one["evidence"]
    ]
    ingest(space, *given)
    with pytest.raises(WorkspaceError, match="no model"):
        space.query("C0001", "level")
    outcome = space.train(plan=PLAN)
    assert outcome.active
    assert outcome.report is None
    assert space.model is not None
    assert space.model.version == outcome.version
    assert space.query("C0001", "level").method == "spn"
    again = space.train(plan=PLAN, use=False)
    assert again.version == outcome.version


def test_few_entities_are_trained_on_in_folds(space: Workspace) -> None:
    ingest(space, *((f"A{n}", f"{LEVELS[n % 3]} word{n}", LEVELS[n % 3]) for n in range(12)))
    outcome = space.train(plan=PLAN)
    assert outcome.run.few
    assert outcome.trained.config.seeds == (1, 2)
    assert space.query("A1", "level").method == "spn"


def test_two_predicates_of_different_evidence_make_one_model(space: Workspace) -> None:
    given = [(one["entity_id"], one["evidence"][0]["text"], one["label"]) for one in lines(60)]
    ingest(space, *given)
    outcomes = ("clean", "qualified")
    ingest(
        space,
        *((f"C{n:04d}", f"{outcomes[n % 2]} word{n}", outcomes[n % 2]) for n in range(60)),
        predicate="outcome",
    )
    outcome = space.train(plan=PLAN)
    assert outcome.run.predicates == ("level", "outcome")
    assert set(outcome.trained.fitted) == {"level", "outcome"}


def test_an_interrupted_training_continues_from_its_checkpoint(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpf.training.search.CHECKPOINT_SECONDS", 0.0)
    source = TrainingSource(write_lines(tmp_path / "data.jsonl", lines(60)), ("level",))
    epochs: list[int] = []

    def stop(epoch: int, *_: object) -> None:
        epochs.append(epoch)
        if len(epochs) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match="the same command continues"):
        space.train(source, PLAN, watching=TrainingCallbacks(on_epoch=stop))
    assert space.models.versions() == []
    resumed = space.train(source, PLAN, watching=TrainingCallbacks(on_epoch=stop))
    assert epochs == [1, 2, 2, 3]
    other = Workspace.create(tmp_path / "other", space.schema)
    with other:
        assert other.train(source, PLAN).version == resumed.version


def test_one_seed_is_trained_alone(space: Workspace, tmp_path: Path) -> None:
    source = TrainingSource(write_lines(tmp_path / "data.jsonl", lines(60)), ("level",))
    outcome = space.train(source, TrainingPlan(QUICK, single=7, name="mine"))
    assert outcome.trained.config.seeds == (7,)
    assert outcome.trained.card.name == "mine"
    with pytest.raises(ConfigError, match="not both"):
        TrainingPlan(single=7, seeds=(1, 2))


def test_the_grid_uses_its_best_and_lists_the_others(
    space: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lpf.training.config.LEARNING_RATES", (1e-5, 3e-2))
    monkeypatch.setattr("lpf.training.config.LATENT_WIDTHS", (4,))
    monkeypatch.setattr("lpf.training.config.HIDDEN_WIDTHS", ((8,), (6,)))
    source = TrainingSource(write_lines(tmp_path / "data.jsonl", lines(60)), ("level",))
    steps: list[str] = []
    plan = TrainingPlan(QUICK, seeds=(1,), grid=True)
    outcome = space.train(source, plan, watching=TrainingCallbacks(on_status=steps.append))
    tried = outcome.run.tried
    assert len(tried) == 4
    best = max(tried, key=lambda one: (one.accuracy, -one.loss))
    assert outcome.run.config.learning_rate == best.learning_rate == 3e-2
    assert outcome.run.config.hidden == best.hidden
    assert any("configuration 4 of 4" in step for step in steps)
    searched = len(list((space.folder / "searches").iterdir()))
    assert space.train(source, plan).version == outcome.version
    assert len(list((space.folder / "searches").iterdir())) == searched


def test_a_domain_is_added_once_and_under_a_prefix_if_ids_are_taken(
    tmp_path: Path, reads_words: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "lpf.domains.parameters.PRESETS", {"paper": replace(preset("paper"), entities=90)}
    )
    both = [load_domain(name).schema() for name in ("compliance", "construction")]
    schema = Schema(
        tuple(predicate for one in both for predicate in one),
        tuple(relation for one in both for relation in one.relations),
    )
    with Workspace.create(tmp_path / "workspace", schema) as space:
        first = space.add_domain("compliance")
        assert first.evidence.added == space.evidence.count() == len(list(first.dataset.items))
        assert first.facts == space.facts.count() > 0
        assert (first.prefix, first.note) == ("", None)
        assert {entity.split for entity in first.dataset} == {"test"}
        again = space.add_domain("compliance")
        assert (again.evidence.added, again.facts, again.note) == (0, 0, None)
        edited = next(first.dataset.items).evidence_id
        space.edit(edited, text_content="Corrected by hand.")
        for _ in range(2):
            again = space.add_domain("compliance")
            assert (again.prefix, again.evidence.added, again.evidence.updated) == ("", 0, 0)
            assert again.evidence.unchanged == again.evidence.read == first.evidence.read
        assert space.evidence.get(edited).evidence.text_content == "Corrected by hand."
        second = space.add_domain("construction")
        assert second.prefix == "construction-"
        assert second.note is not None
        assert "construction-" in second.note
        assert second.evidence.rejected == 0
        assert space.add_domain("construction").evidence.added == 0
        with pytest.raises(TrainingError, match="no labelled evidence"):
            own_dataset(space)  # what is known is of predicates without evidence
    other = Schema((Predicate("level", LEVELS),))
    with (
        Workspace.create(tmp_path / "other", other) as space,
        pytest.raises(ConfigError, match="lpf init DIR --domain compliance"),
    ):
        space.add_domain("compliance")


def test_a_learned_circuit_gives_the_prior_that_a_model_is_fitted_and_scored_with(
    space: Workspace,
) -> None:
    """Answers have the circuit's prior, so a warning about the schema's would be wrong."""
    values = [("high", "medium", "low", *["high"] * 7)[number % 10] for number in range(80)]
    for number, value in enumerate(values):
        ingest(space, (f"C{number}", f"{value} word{number % 7}", value))
    before = space.train(None, PLAN).run
    assert before.learned_prior is False
    assert any("prior gives" in one for one in before.trained.warnings)
    space.learn_circuit()
    after = space.train(None, PLAN).run
    assert after.learned_prior is True
    assert not any("prior gives" in one for one in after.trained.warnings)
    expected = np.exp(space.background.log_prior("level"))
    np.testing.assert_allclose(after.dataset.schema["level"].prior, expected, atol=1e-9)
    scores = [one.trained.held_out.by_predicate["level"] for one in (before, after)]
    assert scores[0].prior_nll == pytest.approx(np.log(3.0))
    assert scores[1].prior_nll < scores[0].prior_nll


def test_a_circuit_from_before_the_values_changed_leaves_the_schemas_prior(tmp_path: Path) -> None:
    earlier = Schema((Predicate("level", ("bad", "good")),))
    learn_from_rows(tmp_path, earlier, [{"level": "good"}] * 20)
    now = Schema((Predicate("level", LEVELS),))
    assert with_learned_priors(now, read_circuit(tmp_path)) == now
    assert with_learned_priors(earlier, read_circuit(tmp_path))["level"].prior[1] > 0.9
    assert with_learned_priors(now, None) is now
