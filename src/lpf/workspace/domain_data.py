"""The evidence and facts of a synthetic domain in a workspace, to ask about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from lpf import domains
from lpf.datasets import Dataset
from lpf.domains import Domain
from lpf.ingest import IngestOutcome, content_hash, ingest_rows
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import NewFact
from lpf.types import Evidence
from lpf.workspace.training_sources import require_domain
from lpf.workspace.wiring import Wiring


@dataclass(frozen=True)
class AddedDomain:
    """``dataset`` holds the test entities under the ids they have here, with their true values,
    which the store does not know. ``note`` says why ``prefix`` stands before the ids, where nobody
    asked for it."""

    dataset: Dataset
    evidence: IngestOutcome
    facts: int
    prefix: str
    note: str | None = None


def add_domain(
    workspace: Wiring, name: str, preset: str, seed: int, prefix: str | None
) -> AddedDomain:
    """Added a second time, it is there once. ConfigError where the schema lacks the domain's
    predicates."""
    domain = domains.load_domain(name)
    require_domain(workspace.schema, domain, domain.predicate, domain.related.predicate)
    made = _test_entities(domain, preset, seed, prefix or "")
    note = None
    if prefix is None and _clash(workspace.evidence, domain, made):
        prefix = f"{domain.name}-"
        note = f"other evidence has ids of {domain.name}: these begin with {prefix!r} here."
        made = _test_entities(domain, preset, seed, prefix)
    outcome = ingest_rows(
        [_row(one) for one in _evidence(domain, made)],
        workspace.evidence,
        workspace.schema,
        workspace.reader,
        rejects_folder=workspace.folder / "rejects",
        name=f"domain {domain.name}",
    )
    added = workspace.facts.add(_facts(domain, made))
    return AddedDomain(made, outcome, len(added), prefix or "", note)


def _test_entities(domain: Domain, preset: str, seed: int, prefix: str) -> Dataset:
    made = domains.generate(domain, domains.preset(preset), seed=seed, prefix=prefix)
    return made.select(made.positions("test").tolist())


def _clash(store: EvidenceStore, domain: Domain, made: Dataset) -> bool:
    """Whether an id is another item's, or the entities are known from other evidence alone."""
    ours = {one.evidence_id: content_hash(one) for one in _evidence(domain, made)}
    taken = store.hashes(ours)
    if any(ours[name] != known for name, known in taken.items()):
        return True
    strangers = store.ids_of_entities(entity.entity_id for entity in made)
    return not taken and any(True for _ in strangers)


def _evidence(domain: Domain, made: Dataset) -> Sequence[Evidence]:
    """Without labels: what is to be asked about must not be trained on."""
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
        for entity in made
        for item in entity.evidence
    ]


def _row(evidence: Evidence) -> dict[str, object]:
    """As a line of an evidence file."""
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


def _facts(domain: Domain, made: Dataset) -> list[NewFact]:
    return [
        NewFact(
            row["entity_id"],
            row["predicate"],
            row["value"],
            datetime.fromisoformat(row["timestamp"]),
            source=row["source"],
            where=f"domain {domain.name}, {row['entity_id']}",
        )
        for row in domains.known_facts(domain, made)
    ]
