"""The whole way once, on embedded defaults: what ``lpf demo`` runs and shows.

A company that no network has seen is asked about in both variants; then its value becomes a known
fact, and the same question is answered at once. All of it is in the ledger, which is verified.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lpf.ledger import Verification, verify
from lpf.results import QueryResult
from lpf.storage.facts import NewFact
from lpf.types import QueryOptions
from lpf.workspace.circuit_file import FILE_NAME as CIRCUIT
from lpf.workspace.circuit_file import learn_from_rows
from lpf.workspace.settings import FILE_NAME
from lpf.workspace.training_runs import TrainingCallbacks, TrainingPlan
from lpf.workspace.training_sources import TrainingSource
from lpf.workspace.workspace import Workspace

DOMAIN, PRESET, ENTITY = "compliance", "paper", "C0001"
# Of this draw C0001 is a test company: its notes disagree.
DATA_SEED = 604
SEEDS = (42, 123, 456, 789, 2024)
FACT_SOURCE = "the demo: what an inspector found"
FACT_CONFIDENCE = 0.99


@dataclass(frozen=True)
class Demonstration:
    """What was asked and answered. ``truth`` is the generator's own answer from the same evidence,
    ``label`` the company's real value; ``was_trained`` is whether this run trained the model."""

    folder: Path
    version: str
    was_trained: bool
    label: str
    truth: Mapping[str, float]
    spn: QueryResult
    learned: QueryResult
    canonical: QueryResult
    texts: Mapping[str, str]
    metrics: Mapping[str, float]
    ledger: Verification

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": {"entity_id": ENTITY, "predicate": self.spn.predicate, "label": self.label},
            "spn": self.spn.to_dict(),
            "learned": self.learned.to_dict(),
            "canonical": self.canonical.to_dict(),
            "perfect_reader": dict(self.truth),
            "metrics": dict(self.metrics),
            "ledger": {"ok": self.ledger.ok, "records": self.ledger.records},
            "model": {"version": self.version, "trained_now": self.was_trained},
            "workspace": str(self.folder),
        }


def demonstrate(folder: Path, watching: TrainingCallbacks | None = None) -> Demonstration:
    """Runs it in ``folder``, which becomes a workspace. What an earlier run made there is used
    again."""
    watching = watching or TrainingCallbacks()
    with _opened(folder) as workspace:
        was_trained = workspace.models.active() is None
        if was_trained:
            _train(workspace, watching)
        return _asked(workspace, was_trained, watching)


def _opened(folder: Path) -> Workspace:
    from lpf.domains import load_domain

    if (folder / FILE_NAME).is_file():
        return Workspace.open(folder)
    return Workspace.create(folder, load_domain(DOMAIN).schema())


def _train(workspace: Workspace, watching: TrainingCallbacks) -> None:
    source = TrainingSource(DOMAIN, preset=PRESET, data_seed=DATA_SEED)
    outcome = workspace.train(source, TrainingPlan(seeds=SEEDS), watching=watching)
    dataset = outcome.run.dataset
    known = dataset.select(dataset.positions("train").tolist())
    rows = [{**entity.labels, **entity.facts} for entity in known]
    if not (workspace.folder / CIRCUIT).exists():
        learn_from_rows(workspace.folder, workspace.schema, rows)
        workspace.invalidate("background", "engine", "orchestrator")


def _asked(workspace: Workspace, was_trained: bool, watching: TrainingCallbacks) -> Demonstration:
    watching.status("adding evidence and asking")
    added = workspace.add_domain(DOMAIN, PRESET, DATA_SEED)
    predicate = next(iter(workspace.schema)).name
    _withdraw_earlier_fact(workspace, predicate)
    company = next(one for one in added.dataset if one.entity_id == ENTITY)
    spn = workspace.query(ENTITY, predicate)
    learned = workspace.query(ENTITY, predicate, QueryOptions(variant="learned"))
    label = company.labels[predicate]
    fact = NewFact(ENTITY, predicate, label, datetime.now(UTC), FACT_CONFIDENCE, FACT_SOURCE)
    workspace.facts.add([fact])
    canonical = workspace.query(ENTITY, predicate)
    workspace.ledger.checkpoint()
    stored = workspace.evidence.get_many(spn.evidence_chain)
    assert workspace.model is not None  # trained above, or before
    assert company.truth is not None  # a generated entity has it
    return Demonstration(
        workspace.folder,
        workspace.model.version,
        was_trained,
        label,
        company.truth["posterior"],
        spn,
        learned,
        canonical,
        {name: one.evidence.text_content for name, one in stored.items()},
        workspace.model.card.metrics,
        verify(workspace.database),
    )


def _withdraw_earlier_fact(workspace: Workspace, predicate: str) -> None:
    """An earlier run's fact would answer before any evidence is looked at."""
    for fact in workspace.facts.listed(ENTITY, predicate):
        if fact.source == FACT_SOURCE:
            workspace.facts.withdraw(fact.fact_id)
