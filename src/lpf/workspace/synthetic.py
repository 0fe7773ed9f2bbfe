"""Synthetic data in a workspace: a domain's test entities to ask about, and what ``lpf demo`` runs.

The demo asks about a company that the model has not seen, with both variants. Then the company's
value becomes a known fact, and the same question is answered by the fact. Every answer is in the
ledger, which is verified at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lpf import domains
from lpf.datasets import Dataset
from lpf.domains import Domain
from lpf.ingest import IngestOutcome, content_hash, ingest_rows
from lpf.ledger import Verification, verify
from lpf.results import QueryResult
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import NewFact
from lpf.types import Evidence, QueryOptions
from lpf.workspace.circuit import CIRCUIT_FILE, learn_from_rows
from lpf.workspace.settings import FILE_NAME
from lpf.workspace.training_runs import TrainingCallbacks, TrainingPlan
from lpf.workspace.training_sources import TrainingSource, require_domain
from lpf.workspace.wiring import CIRCUIT_PARTS, REJECTS, Wiring
from lpf.workspace.workspace import Workspace

# The demo's domain and entity. With this data seed C0001 is a test company whose notes disagree.
DOMAIN, PRESET, ENTITY = "compliance", "paper", "C0001"
DATA_SEED = 604
SEEDS = (42, 123, 456, 789, 2024)
FACT_SOURCE = "the demo: what an inspector found"
FACT_CONFIDENCE = 0.99


@dataclass(frozen=True)
class AddedDomain:
    """What ``add_domain`` added. ``dataset`` holds the test entities under their IDs in this
    workspace, with their true values, which the store does not get. ``note`` explains a ``prefix``
    that the caller did not choose."""

    dataset: Dataset
    evidence: IngestOutcome
    facts: int
    prefix: str
    note: str | None = None


def add_domain(
    workspace: Wiring, name: str, preset: str, seed: int, prefix: str | None
) -> AddedDomain:
    """Add evidence and facts of a domain's test entities. Adding them again changes nothing.
    ConfigError if the schema lacks the domain's predicates."""
    domain = domains.load_domain(name)
    require_domain(workspace.schema, domain, domain.predicate, domain.related.predicate)
    dataset = _test_entities(domain, preset, seed, prefix or "")
    note = None
    if prefix is None and _clashes(workspace.evidence, domain, dataset):
        prefix = f"{domain.name}-"
        note = f"other evidence uses IDs of {domain.name}, so these begin with {prefix!r} here."
        dataset = _test_entities(domain, preset, seed, prefix)
    workspace.list_copies()
    items = _evidence(domain, dataset)
    edited = _edited(workspace.evidence, items)
    outcome = ingest_rows(
        [_row(item) for item in items if item.evidence_id not in edited],
        workspace.evidence,
        workspace.schema,
        workspace.reader.base,
        rejects_folder=workspace.folder / REJECTS,
        name=f"domain {domain.name}",
    )
    outcome = replace(
        outcome, read=outcome.read + len(edited), unchanged=outcome.unchanged + len(edited)
    )
    added = workspace.facts.add(_facts(domain, dataset))
    return AddedDomain(dataset, outcome, len(added), prefix or "", note)


def _test_entities(domain: Domain, preset: str, seed: int, prefix: str) -> Dataset:
    dataset = domains.generate(domain, domains.preset(preset), seed=seed, prefix=prefix)
    return dataset.select(dataset.positions("test").tolist())


def _clashes(store: EvidenceStore, domain: Domain, dataset: Dataset) -> bool:
    """Return True if an ID belongs to another item, or the entities have only other evidence. An
    item of the domain that was edited is still the same item."""
    items = _evidence(domain, dataset)
    edited = _edited(store, items)
    hashes = {item.evidence_id: content_hash(item) for item in items}
    stored = store.hashes(hashes)
    if any(hashes[name] != known for name, known in stored.items() if name not in edited):
        return True
    other_items = store.ids_of_entities(entity.entity_id for entity in dataset)
    return not stored and any(True for _ in other_items)


def _edited(store: EvidenceStore, items: Sequence[Evidence]) -> set[str]:
    """The IDs of items that were replaced by another version. It is kept."""
    hashes = {item.evidence_id: content_hash(item) for item in items}
    current, earlier = store.hashes(hashes), store.earlier_hashes(hashes)
    return {
        name
        for name, replaced in earlier.items()
        if hashes[name] in replaced and current.get(name) != hashes[name]
    }


def _evidence(domain: Domain, dataset: Dataset) -> Sequence[Evidence]:
    """Without labels: entities to ask about must not be trained on."""
    return [
        Evidence(
            evidence_id=item.evidence_id,
            entity_id=entity.entity_id,
            predicate=domain.predicate,
            text_content=item.text,
            credibility=item.credibility,
            timestamp=item.timestamp,
            source=item.source,
            report_id=item.report_id,
        )
        for entity in dataset
        for item in entity.evidence
    ]


def _row(evidence: Evidence) -> dict[str, object]:
    """As one row of an evidence file."""
    moment = evidence.timestamp
    return {
        "evidence_id": evidence.evidence_id,
        "entity_id": evidence.entity_id,
        "predicate": evidence.predicate,
        "text": evidence.text_content,
        "credibility": evidence.credibility,
        "timestamp": None if moment is None else moment.isoformat(),
        "source": evidence.source,
        "report_id": evidence.report_id,
    }


def _facts(domain: Domain, dataset: Dataset) -> list[NewFact]:
    return [
        NewFact(
            row["entity_id"],
            row["predicate"],
            row["value"],
            datetime.fromisoformat(row["timestamp"]),
            source=row["source"],
            where=f"domain {domain.name}, {row['entity_id']}",
        )
        for row in domains.known_facts(domain, dataset)
    ]


@dataclass(frozen=True)
class Demonstration:
    """The answers of the demo. ``truth`` is the generator's own answer from the same evidence,
    ``label`` the company's true value; ``was_trained`` is True if this run trained the model."""

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

    @property
    def nll(self) -> dict[str, float]:
        """The NLL of each variant on the test entities."""
        place = f"{self.spn.predicate}/test"
        return {name: self.metrics[f"{place}/{name}/nll"] for name in ("spn", "learned")}

    @property
    def better(self) -> str:
        """The variant to believe: the one with the lower NLL on the test entities."""
        return min(self.nll, key=self.nll.__getitem__)

    @property
    def verdict(self) -> str:
        """Which variant to believe, and why."""
        titles, better = {"spn": "LPF-SPN", "learned": "LPF-Learned"}, self.better
        worse = next(name for name in titles if name != better)
        answers = {"spn": self.spn.top_value, "learned": self.learned.top_value}
        believe = f"Believe {titles[better]}"
        if answers[better] != answers[worse]:
            believe = (
                f"The variants contradict each other: {titles[better]} says {answers[better]}, "
                f"{titles[worse]} says {answers[worse]}. {believe}"
            )
        return (
            f"{believe}: on companies that neither was trained on, its probabilities are better "
            f"(NLL {self.nll[better]:.3f} against {self.nll[worse]:.3f}; lower is better)."
        )

    def to_dict(self) -> dict[str, Any]:
        return {
            "query": {"entity_id": ENTITY, "predicate": self.spn.predicate, "label": self.label},
            "spn": self.spn.to_dict(),
            "learned": self.learned.to_dict(),
            "canonical": self.canonical.to_dict(),
            "believe": {"variant": self.better, "nll": self.nll, "reason": self.verdict},
            "perfect_reader": dict(self.truth),
            "metrics": dict(self.metrics),
            "ledger": {"ok": self.ledger.ok, "records": self.ledger.records},
            "model": {"version": self.version, "trained_now": self.was_trained},
            "workspace": str(self.folder),
        }


def demonstrate(folder: Path, watching: TrainingCallbacks | None = None) -> Demonstration:
    """Run the demo in ``folder``, which becomes a workspace. A second run there uses the model
    of the first."""
    watching = watching or TrainingCallbacks()
    with _open_or_create(folder) as workspace:
        was_trained = workspace.models.active() is None
        if was_trained:
            _train(workspace, watching)
        return _ask(workspace, was_trained, watching)


def _open_or_create(folder: Path) -> Workspace:
    if (folder / FILE_NAME).is_file():
        return Workspace(folder)
    return Workspace.create(folder, domains.load_domain(DOMAIN).schema())


def _train(workspace: Workspace, watching: TrainingCallbacks) -> None:
    source = TrainingSource(DOMAIN, preset=PRESET, data_seed=DATA_SEED)
    outcome = workspace.train(source, TrainingPlan(seeds=SEEDS), watching=watching)
    dataset = outcome.run.dataset
    training = dataset.select(dataset.positions("train").tolist())
    if not (workspace.folder / CIRCUIT_FILE).exists():
        rows = [{**entity.labels, **entity.facts} for entity in training]
        learn_from_rows(workspace.folder, workspace.schema, rows)
        workspace.invalidate(*CIRCUIT_PARTS)


def _ask(workspace: Workspace, was_trained: bool, watching: TrainingCallbacks) -> Demonstration:
    watching.status("adding evidence and asking")
    added = workspace.add_domain(DOMAIN, PRESET, DATA_SEED)
    predicate = next(iter(workspace.schema)).name
    _withdraw_earlier_fact(workspace, predicate)
    company = next(entity for entity in added.dataset if entity.entity_id == ENTITY)
    spn = workspace.query(ENTITY, predicate)
    learned = workspace.query(ENTITY, predicate, QueryOptions(variant="learned"))
    label = company.labels[predicate]
    fact = NewFact(ENTITY, predicate, label, datetime.now(UTC), FACT_CONFIDENCE, FACT_SOURCE)
    workspace.facts.add([fact])
    canonical = workspace.query(ENTITY, predicate)
    workspace.ledger.checkpoint()
    stored = workspace.evidence.get_many(spn.evidence_chain)
    assert workspace.model is not None  # trained above, or by an earlier run
    assert company.truth is not None  # every generated entity has it
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
    """The fact of an earlier run would answer before any evidence is used."""
    for fact in workspace.facts.page(ENTITY, predicate):
        if fact.source == FACT_SOURCE:
            workspace.facts.withdraw(fact.fact_id)
