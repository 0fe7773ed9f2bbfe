"""In a workspace: answers without what the claim alone gives away."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from builders import model_config, sharp_tensors
from hash_reader import CueReader
from labelled_workspaces import WordReader
from lpf.circuits import DataTable, Variable, dump_circuit, learn_chow_liu
from lpf.cli.answer_view import show_answer
from lpf.errors import ConfigError
from lpf.model.artefact import save_model
from lpf.model.claim_alone import ClaimAlone
from lpf.model.config import EncoderConfig
from lpf.reading import PairReader
from lpf.results import QueryResult
from lpf.types import QueryOptions
from lpf.workspace import Workspace
from lpf.workspace.circuit import CIRCUIT_FILE
from workspaces import CARD, LEVELS, schema

CLAIM = "The books are in order."
READER = PairReader(WordReader(), CueReader())
SHARES = np.array([0.2, 0.3, 0.5])
WEIGHT = np.random.default_rng(1).standard_normal((16, 3))
BIAS = np.array([0.4, 0.0, -0.3])
PLAIN, WITHOUT = QueryOptions(), QueryOptions(without_claim_prior=True)


def alone(claim: str) -> np.ndarray:
    """P(level | claim), worked out here."""
    (features,) = WordReader().read_many([claim])
    weights = np.exp(features.astype(float) @ WEIGHT.astype(np.float32) + BIAS)
    return weights / weights.sum()


def rows(entity_id: str, predicate: str, *texts: str, claim: str | None = CLAIM) -> list[Any]:
    return [
        {
            "evidence_id": f"{entity_id}_{predicate}_{number}",
            "entity_id": entity_id,
            "predicate": predicate,
            "text": text,
            "claim": claim,
        }
        for number, text in enumerate(texts)
    ]


def related_circuit() -> str:
    """The outcome is clean unless the level is low."""
    variables = [Variable("level", LEVELS), Variable("outcome", ("clean", "qualified"))]
    table = [
        {"level": level, "outcome": "qualified" if level == "low" else "clean"}
        for level in LEVELS
        for _ in range(30)
    ]
    return dump_circuit(learn_chow_liu(DataTable.from_rows(variables, table)))


@pytest.fixture(scope="module")
def space(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """The model knows what a claim says about the level, not about the outcome. C1 has items about
    both; C2's have no claim."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("lpf.workspace.wiring.open_reader", lambda *_, **__: WordReader())
        patch.setattr(
            "lpf.workspace.wiring.claim_reader", lambda text: PairReader(text, CueReader())
        )
        folder = tmp_path_factory.mktemp("claim") / "w"
        with Workspace.create(folder, schema()) as made:
            (folder / CIRCUIT_FILE).write_text(related_circuit())
            config = model_config(
                2, encoder=EncoderConfig(READER.width), reader_id=READER.reader_id
            )
            known = ClaimAlone(WEIGHT, BIAS, np.log(SHARES)).tensors("level")
            tensors = {**sharp_tensors(config), **known}
            config = replace(config, claim_alone=("level",))
            made.use_model(save_model(folder / "models", config, tensors, CARD))
            made.ingest(rows("C1", "level", "They are indeed", "They never were"))
            made.ingest(rows("C1", "outcome", "Clean books"))
            made.ingest(rows("C2", "level", "They are indeed", claim=None))
            made.ingest(rows("C3", "level", "It rained again", claim="Another claim."))
            yield made


def added_up(result: QueryResult) -> np.ndarray:
    """The answer from the parts that the result shows."""
    parts = [result.base, *(one.contribution for one in result.related)]
    parts += [*result.evidence.contributions]
    if result.claim_alone is not None:
        parts.append(result.claim_alone)
    weights = np.exp(np.sum(parts, axis=0))
    return weights / weights.sum()


@pytest.mark.parametrize("related", [True, False])
def test_the_answer_is_divided_by_what_the_claim_alone_says(
    space: Workspace, related: bool
) -> None:
    ask = {"related_evidence": None if related else False}
    plain = space.query("C1", "level", replace(PLAIN, **ask))
    result = space.query("C1", "level", replace(WITHOUT, **ask))
    expected = np.array(plain.probabilities) * SHARES / alone(CLAIM)
    np.testing.assert_allclose(result.probabilities, expected / expected.sum(), rtol=1e-6)
    np.testing.assert_allclose(result.claim_alone, np.log(SHARES / alone(CLAIM)), atol=1e-6)
    np.testing.assert_allclose(added_up(result), result.probabilities, rtol=1e-9)
    assert bool(result.related) == related
    assert plain.claim_alone is None


def test_the_answer_says_what_was_taken_out(space: Workspace) -> None:
    result = space.query("C1", "level", WITHOUT)
    best = int((alone(CLAIM) / SHARES).argmax())
    (note,) = [one for one in result.notes if "claim alone" in one]
    assert f"{LEVELS[best]} {alone(CLAIM)[best]:.0%}" in note
    document = result.to_dict()["claim_alone"]
    assert document == dict(zip(LEVELS, result.claim_alone.tolist(), strict=True))
    output = io.StringIO()
    show_answer(Console(file=output, width=120), result, {}, None)
    assert "claim alone, taken out" in output.getvalue()


def test_items_without_a_claim_leave_nothing_to_take_out(space: Workspace) -> None:
    plain, result = (space.query("C2", "level", one) for one in (PLAIN, WITHOUT))
    assert result.probabilities == plain.probabilities
    assert any("no item has a claim" in note for note in result.notes)


def test_many_questions_get_the_same_answers_as_one(space: Workspace) -> None:
    many = space.query_many([("C1", "level"), ("C3", "level"), ("C2", "level")], WITHOUT)
    for one in many:
        alone_asked = space.query(one.entity_id, "level", WITHOUT)
        np.testing.assert_allclose(one.probabilities, alone_asked.probabilities, atol=1e-6)
        assert space.replay(one.record_id).exact


@pytest.mark.parametrize("entity", ["C1", "C2", "C3"])
def test_the_option_is_recorded_and_replayed(space: Workspace, entity: str) -> None:
    result = space.query(entity, "level", WITHOUT)
    record = space.records.expand(space.records.get(result.record_id))
    assert record["context"]["hyperparameters"]["without_claim_prior"] is True
    assert record["claim_alone"] == result.claim_alone.tolist()
    assert space.replay(result.record_id).exact
    assert space.replay(result.record_id, deep=True).agrees
    plain = space.query(entity, "level", PLAIN)
    record = space.records.expand(space.records.get(plain.record_id))
    assert "without_claim_prior" not in record["context"]["hyperparameters"]
    assert "claim_alone" not in record


def test_draws_are_without_the_claim_too(space: Workspace) -> None:
    drawn = space.query("C1", "level", replace(WITHOUT, uncertainty_samples=50))
    plain = space.query("C1", "level", replace(PLAIN, uncertainty_samples=50))
    assert drawn.uncertainty != plain.uncertainty


def test_a_model_that_does_not_know_refuses(space: Workspace) -> None:
    with pytest.raises(ConfigError) as raised:
        space.query("C1", "outcome", WITHOUT)
    assert raised.value.field == "options.without_claim_prior"
    assert "outcome" in str(raised.value)


@pytest.mark.parametrize("other", [{"mode": "paper"}, {"variant": "learned"}])
def test_it_applies_to_the_product_of_robust_mode_only(other: dict[str, Any]) -> None:
    with pytest.raises(ConfigError) as raised:
        QueryOptions(without_claim_prior=True, **other)
    assert raised.value.field == "options.without_claim_prior"
