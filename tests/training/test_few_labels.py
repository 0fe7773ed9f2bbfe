"""Twenty labels on real claims must not give a worse model than none."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

from lpf import metrics
from lpf.baselines import ZERO_LABEL, ZeroLabel
from lpf.ingest import read_labelled
from lpf.reading import open_reader, stance_is_installed
from lpf.training import (
    SEVEN_SEEDS,
    Examples,
    TrainingConfig,
    make_examples,
    read_features,
    train_small,
)
from lpf.training.fitting import answers
from lpf.types import QueryOptions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not stance_is_installed(), reason="lpf-stance is not installed"),
]
SHARED_DATA = Path(__file__).parents[3] / "shared" / "data"
LABELS, ASKED, DRAWS = 20, 150, 3


@pytest.mark.parametrize("name", ["fever_symmetric", "fever_dev_sr", "scifact"])
def test_twenty_labels_are_not_worse_than_none(name: str, tmp_path: Path) -> None:
    """Mean NLL over draws, each tested on other groups; a trained model may lose a little by
    chance."""
    learned, asked, reader_id = real_claims(name, tmp_path)
    predicate = next(iter(asked.dataset.schema)).name
    labels = asked.dataset.labels(predicate)
    without = ZeroLabel(ZERO_LABEL, reader_id).fit(learned, learned, predicate, 0)
    losses = []
    for seed in range(DRAWS):
        few = learned.select(drawn(learned.dataset.labels(predicate), seed))
        model = train_small(few, reader_id, (predicate,), TrainingConfig(), SEVEN_SEEDS)
        schema = asked.dataset.schema
        found = answers(model.runtime(), schema, predicate, asked, QueryOptions())
        losses.append(metrics.nll(found, labels))
    assert np.mean(losses) <= metrics.nll(without.predict_proba(asked), labels) + 0.03


def real_claims(name: str, folder: Path) -> tuple[Examples, Examples, str]:
    """Entities to label and entities to ask about, of different groups."""
    path = SHARED_DATA / f"{name}.jsonl"
    if not path.is_file():
        pytest.skip(f"{path.name} is not there: the public data sets are not part of the project")
    rows = [{**json.loads(line), "split": None} for line in path.read_text().splitlines()[:3000]]
    random.Random(0).shuffle(rows)
    groups = list(dict.fromkeys(row["group_id"] for row in rows))
    asked = set(groups[: len(groups) // 2])
    parts = [[row for row in rows if (row["group_id"] in asked) == is_asked] for is_asked in (0, 1)]
    reader = open_reader(threads=1, with_claim=True)
    made = []
    for count, part in zip((100, ASKED), parts, strict=True):
        file = folder / f"{count}.jsonl"
        file.write_text("".join(json.dumps(row) + "\n" for row in part[:count]))
        dataset = read_labelled(file)
        made.append(make_examples(dataset, read_features(dataset, reader)))
    return made[0], made[1], reader.reader_id


def drawn(labels: np.ndarray, seed: int) -> np.ndarray:
    """Places of entities that have each value at least twice."""
    generator = np.random.default_rng(seed)
    while True:
        places = np.sort(generator.choice(len(labels), LABELS, replace=False))
        if np.bincount(labels[places], minlength=labels.max() + 1).min() >= 2:
            return places
