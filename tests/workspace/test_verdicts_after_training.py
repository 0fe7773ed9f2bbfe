"""A few labelled claims in a workspace: verdicts that are kept, asked, recorded and replayed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import inf

import numpy as np
import pytest

from hash_reader import CueReader
from labelled_workspaces import WordReader
from lpf.ingest import read_labelled
from lpf.model.artefact import ModelCard, save_model
from lpf.model.zero_label import ZeroLabelNumbers
from lpf.reading import PairReader
from lpf.schema import Predicate, Schema
from lpf.training import make_examples, read_features
from lpf.training.linear import VERDICTS, LinearSettings, LinearTrainer
from lpf.workspace import Workspace

VALUES = ("REFUTES", "SUPPORTS", "NEI")
NUMBERS = ZeroLabelNumbers(
    ("supported", "refuted", "not_enough"),
    ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    (0.1, 0.0, -0.2),
    (0.1, 0.15, 0.75),
    1000,
    {},
)
READER = PairReader(WordReader(), CueReader())
SCHEMA = Schema((Predicate("label", VALUES),))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    folder = tmp_path_factory.mktemp("verdicts")
    rows = [
        {
            "entity_id": f"L{place}",
            "claim": f"Claim {place}",
            "label": VALUES[place % 3],
            "evidence": [{"evidence_id": f"L{place}_1", "text": f"indeed number {place}"}],
        }
        for place in range(6)
    ]
    (folder / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    dataset = read_labelled(folder / "data.jsonl", schema=SCHEMA)
    examples = make_examples(dataset, read_features(dataset, READER))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lpf.training.linear.installed_head", NUMBERS.head)
        patch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
        patch.setattr("lpf.workspace.wiring.claim_reader", lambda _: READER)
        trainer = LinearTrainer(examples, READER.width - 3)
        settings = {"label": LinearSettings(VERDICTS, inf)}
        runtime = trainer.runtime(settings, (1,), READER.reader_id)
        with Workspace.create(folder / "w", SCHEMA) as made:
            card = ModelCard("verdicts", "", "", "")
            made.use_model(
                save_model(made.folder / "models", runtime.config, runtime.tensors, card)
            )
            made.ingest(
                [
                    {"entity_id": entity, "claim": "It works.", "text": text}
                    for entity, texts in {
                        "silent": ["The office moved", "It rained again"],
                        "spoken": ["It never did", "It rained again"],
                    }.items()
                    for text in texts
                ]
            )
            yield made


def test_texts_that_say_nothing_are_an_answer_of_their_own(space: Workspace) -> None:
    """The prior of the schema is uniform; silence means NEI."""
    silent, spoken = space.query("silent"), space.query("spoken")
    assert (silent.top_value, spoken.top_value) == ("NEI", "REFUTES")
    assert silent.confidence > 0.7
    weights = np.exp(silent.base + silent.evidence.contributions.sum(axis=0))
    np.testing.assert_allclose(silent.probabilities, weights / weights.sum(), rtol=1e-9)


@pytest.mark.parametrize("entity", ["silent", "spoken"])
def test_the_answer_is_recorded_and_replays(space: Workspace, entity: str) -> None:
    result = space.query(entity)
    assert space.replay(result.record_id).exact
    assert space.replay(result.record_id, deep=True).agrees
