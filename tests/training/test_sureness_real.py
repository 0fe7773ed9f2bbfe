"""Coverage and risk on real files: answers of a regression on words about entities that it was not
fitted to, and verdicts without labels, computed once per file.

Held-out and asked entities are drawn from these answers again and again. What is tested holds for
any answers, so it does not matter that a better method would give better ones.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import betabinom

from lpf.baselines import ZERO_LABEL, ZeroLabel
from lpf.datasets import grouped_folds
from lpf.ingest import read_labelled
from lpf.metrics.deferral import deferral_cutoff
from lpf.metrics.prediction_sets import cutoff, cutoffs_by_value, sets, surprise
from lpf.reading import open_reader, stance_is_installed
from lpf.training import Examples, make_examples, read_features
from lpf.training.held_out import held_out_answers
from lpf.training.lexical import VIEWS, entity_logits, fit_lexical

pytestmark = pytest.mark.slow
SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
FILES = (
    *("climate_fever", "fever_dev_sr", "fever_symmetric"),
    *("peerread_iclr2017", "rumoureval2017", "scifact"),
)
COVERAGES = (0.8, 0.9, 0.95)
MOST, FOLDS, REPETITIONS = 1000, 5, 100


@dataclass(frozen=True)
class Answers:
    """``distribution`` [E, V] about held-out entities, their ``labels`` and ``groups`` [E]."""

    distribution: np.ndarray
    labels: np.ndarray
    groups: np.ndarray

    @property
    def surprises(self) -> np.ndarray:
        """Of all values, [E, V]. A tiny number breaks ties, of entities with the same texts."""
        noise = np.random.default_rng(0).random(len(self.labels))[:, None]
        return (surprise(self.distribution) * (1 + 1e-4 * noise)).astype(np.float32)

    @property
    def of_truth(self) -> np.ndarray:
        return self.surprises[np.arange(len(self.labels)), self.labels]


def rows_of(name: str) -> list[dict]:
    path = SHARED_DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there: the public data sets are not part of the project")
    return [json.loads(line) for line in path.read_text().split("\n")[:MOST] if line]


@cache
def answers(name: str) -> Answers:
    examples = made(rows_of(name), name)
    dataset = examples.dataset
    predicate = next(iter(dataset.schema)).name
    values = len(dataset.schema[predicate].values)
    labels = dataset.labels(predicate)
    found = np.full((len(labels), values), np.nan)
    for fold in grouped_folds(dataset, predicate, FOLDS, 0):
        rest = np.setdiff1d(np.arange(len(labels)), fold)
        fit = fit_lexical(examples.select(rest), predicate, seed=0, views=VIEWS[:1])
        logits = entity_logits(fit.model, examples.select(fold))
        found[fold] = softmax(logits, axis=1)
    held = held_out_answers("shared", found, dataset, predicate)
    order = np.random.default_rng(0).permutation(len(labels))  # that of ``held_out_answers``
    assert np.array_equal(held.labels, labels[order])
    return Answers(found[order], labels[order], held.groups)


def made(rows: list[dict], name: str) -> Examples:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{name}.jsonl"
        file.write_text("".join(json.dumps({**row, "split": None}) + "\n" for row in rows))
        dataset = read_labelled(file)
    items = sum(len(entity.evidence) for entity in dataset)
    return make_examples(dataset, np.zeros((items, 1), np.float32), None)


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("name", FILES)
def test_coverage_over_random_splits_is_within_the_interval(name: str, coverage: float) -> None:
    found, generator = answers(name), np.random.default_rng(1)
    truth, count = found.of_truth, len(found.labels)
    half = count // 2
    rank = int(np.ceil((half + 1) * coverage - 1e-9))
    chances = betabinom(count - half, rank, half + 1 - rank)
    low, high = chances.interval(0.95)
    covered = []
    for _ in range(REPETITIONS):
        order = generator.permutation(count)
        limit = cutoff(truth[order[:half]], coverage)
        covered.append(int(sets(truth[order[half:], None], limit).sum()))
    within = sum(low <= one <= high for one in covered)
    assert within >= 88, (np.mean(covered) / (count - half), within)
    assert abs(np.mean(covered) - chances.mean()) < 3.5 * chances.std() / np.sqrt(REPETITIONS)


@pytest.mark.parametrize("coverage", COVERAGES)
@pytest.mark.parametrize("name", FILES)
def test_coverage_of_each_value_is_within_the_interval(name: str, coverage: float) -> None:
    found, generator = answers(name), np.random.default_rng(2)
    values, half = found.distribution.shape[1], len(found.labels) // 2
    surprises, truth, labels = found.surprises, found.of_truth, found.labels
    within = np.zeros(values)
    for _ in range(REPETITIONS):
        order = generator.permutation(len(labels))
        held, asked = order[:half], order[half:]
        cutoffs = cutoffs_by_value(truth[held], labels[held], values, coverage)
        members = sets(surprises[asked], cutoffs)
        for value in range(values):
            own, known = labels[asked] == value, int((labels[held] == value).sum())
            rank = int(np.ceil((known + 1) * coverage - 1e-9))
            low, high = betabinom(int(own.sum()), rank, known + 1 - rank).interval(0.95)
            within[value] += low <= members[own, value].sum() <= high
    assert (within >= 87).all(), within


@pytest.mark.parametrize("name", ["fever_dev_sr", "fever_symmetric", "scifact"])
def test_entities_of_new_groups_are_covered(name: str) -> None:
    """Half of the groups are held out. Mean coverage over one entity of each other group."""
    found, generator, covered = answers(name), np.random.default_rng(3), []
    groups = np.unique(found.groups)
    for _ in range(REPETITIONS):
        chosen = generator.permutation(groups)[: len(groups) // 2]
        held = np.isin(found.groups, chosen)
        limit = cutoff(found.of_truth[held], 0.9, found.groups[held])
        asked = np.flatnonzero(~held)
        asked = asked[np.unique(found.groups[asked], return_index=True)[1]]
        covered.append((found.of_truth[asked] <= limit).mean())
    assert abs(np.mean(covered) - 0.9) < 0.02


@pytest.mark.parametrize("share", [0.6, 0.8, 0.95])
@pytest.mark.parametrize("name", FILES)
def test_the_risk_is_kept_in_95_of_100_repetitions(name: str, share: float) -> None:
    """The risk is ``share`` of that without deferral. Held-out entities are drawn with replacement,
    so all answers are the population that they are drawn from, and its risk is known."""
    keep_risk(name, answers(name), share)


@pytest.mark.skipif(not stance_is_installed(), reason="lpf-stance is not installed")
@pytest.mark.parametrize("share", [0.3, 0.5, 0.8])
@pytest.mark.parametrize("name", ["fever_dev_sr", "fever_symmetric"])
def test_the_risk_of_verdicts_without_labels_is_kept(name: str, share: float) -> None:
    """Where words alone say nothing."""
    keep_risk(name, verdicts(name), share)


@cache
def verdicts(name: str) -> Answers:
    """What is answered without labels, about 400 entities."""
    reader = open_reader(threads=1, with_claim=True)
    examples = made(rows_of(name)[:400], name)
    dataset = examples.dataset
    examples = make_examples(dataset, read_features(dataset, reader))
    predicate = next(iter(dataset.schema)).name
    method = ZeroLabel(ZERO_LABEL, reader.reader_id).fit(examples, examples, predicate, 0)
    found = method.predict_proba(examples)
    labels = dataset.labels(predicate)
    return Answers(found, labels, np.arange(len(labels)))


def keep_risk(name: str, found: Answers, share: float) -> None:
    """At least 95 times in 100."""
    generator = np.random.default_rng(4)
    sure = found.surprises.min(axis=1)
    right = found.distribution.argmax(axis=1) == found.labels
    max_risk = float(share * (1.0 - right.mean()))
    kept, answered = 0, []
    for _ in range(REPETITIONS):
        drawn = generator.integers(0, len(right), len(right))
        limit = deferral_cutoff(sure[drawn], right[drawn], max_risk)
        given = np.zeros(len(right), bool) if limit is None else sure < limit
        kept += not given.any() or 1.0 - right[given].mean() <= max_risk
        answered.append(given.mean())
    print(f"{name}: {max_risk:.2f} kept {kept} times, {np.mean(answered):.0%} answered")
    assert kept >= 95
