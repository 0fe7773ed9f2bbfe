"""The workspace's circuit: learned from known facts and labels, stored in ``circuit.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from lpf.circuits import (
    CompiledCircuit,
    Variable,
    compile_circuit,
    load_circuit,
    mutual_information,
)
from lpf.errors import CircuitError, ConfigError, WorkspaceError
from lpf.schema import Schema
from lpf.storage.atomic_files import write_atomically
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FactStore

CIRCUIT_FILE = "circuit.json"
ENTITIES_PER_CELL = 10  # with fewer per pair of values, a relation is learned roughly
LEAST_INFORMATION = 1e-6  # nats; predicates below it count as independent


def read_circuit(folder: Path) -> CompiledCircuit | None:
    """The stored circuit, or None if none was learned: predicates are then independent."""
    path = folder / CIRCUIT_FILE
    if not path.is_file():
        return None
    try:
        return compile_circuit(load_circuit(path.read_text(encoding="utf-8")))
    except CircuitError as error:
        raise WorkspaceError(
            f"{path}: {error} Nothing was answered; learn it again with 'lpf facts learn', or "
            "remove the file."
        ) from error


def with_learned_priors(schema: Schema, circuit: CompiledCircuit | None) -> Schema:
    """``schema`` with the priors that answers have: those of a learned circuit, where it has the
    predicate with the same values."""
    if circuit is None:
        return schema
    learned = {variable.name: variable.values for variable in circuit.circuit.variables}
    priors = circuit.marginals()
    return replace(
        schema,
        predicates=tuple(
            replace(one, prior=tuple(priors[one.name].tolist()))
            if learned.get(one.name) == one.values
            else one
            for one in schema
        ),
    )


@dataclass(frozen=True)
class LearnedRelation:
    """What was learned about two related predicates: their mutual information in nats (0 for
    none), from ``entities`` whose values of both are known. Their table has ``cells``."""

    between: tuple[str, str]
    nats: float
    entities: int
    cells: int

    @property
    def has_few(self) -> bool:
        """Return True if there are fewer than 10 entities per cell of the table."""
        return self.entities < self.needed

    @property
    def needed(self) -> int:
        return ENTITIES_PER_CELL * self.cells


@dataclass(frozen=True)
class LearnedCircuit:
    """How many entities a circuit was learned from, what was learned about each two related
    predicates, and ``notes`` on values that were left out."""

    entities: int
    relations: tuple[LearnedRelation, ...]
    notes: tuple[str, ...] = ()

    @property
    def information(self) -> Mapping[tuple[str, str], float]:
        """The mutual information of related predicates in nats."""
        return {one.between: one.nats for one in self.relations}

    @property
    def found_nothing(self) -> bool:
        return all(one.nats < LEAST_INFORMATION for one in self.relations)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One sentence for each relation that was learned from few entities."""
        return tuple(
            f"{one.between[0]} and {one.between[1]}: {_both(one.entities)} known, fewer than 10 "
            f"for each of the {one.cells:,} pairs of values ({one.needed:,}). What was learned is "
            "rough; add facts or labels of more entities."
            for one in self.relations
            if one.has_few
        )


def learn_circuit(
    folder: Path, schema: Schema, facts: FactStore, evidence: EvidenceStore
) -> LearnedCircuit:
    """Learn the best tree over each group of related predicates and store it; predicates that the
    schema does not relate stay independent. An entity's value is its
    newest fact with a confidence of at least 0.5, else the value that most of its labelled items
    support. ConfigError if no value is known."""
    from lpf.workspace.training_data import known_labels

    labels, notes = known_labels(evidence, facts, schema)
    rows: dict[str, dict[str, str]] = {}
    for (entity_id, predicate), value in labels.items():
        rows.setdefault(entity_id, {})[predicate] = value
    if not rows:
        raise ConfigError(
            "there are none to learn from, and no labelled evidence either. Nothing was learned.",
            field="facts",
            hint="Add some with 'lpf facts add', or ingest evidence with a column supports_value.",
        )
    return learn_from_rows(folder, schema, list(rows.values()), notes)


def learn_from_rows(
    folder: Path,
    schema: Schema,
    rows: Sequence[Mapping[str, str]],
    notes: Sequence[str] = (),
) -> LearnedCircuit:
    """As ``learn_circuit``, from one row per entity: known values by predicate. Everything is
    computed before the file is written: if anything fails, the circuit stays as it was."""
    from lpf.circuits import DataTable, dump_circuit, learn_chow_liu

    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    priors = {predicate.name: predicate.prior for predicate in schema}
    table = DataTable.from_rows(variables, rows)
    circuit = learn_chow_liu(table, priors=priors, groups=schema.groups)
    compiled = compile_circuit(circuit)
    pairs = sorted(
        {pair for relation in schema.relations for pair in combinations(relation.between, 2)}
    )
    columns = {variable.name: place for place, variable in enumerate(variables)}
    relations = []
    for first, second in pairs:
        counts = table.counts(columns[first], columns[second])
        nats = mutual_information(compiled, first, second)
        relations.append(
            LearnedRelation((first, second), nats, int(counts.sum()), int(counts.size))
        )
    learned = LearnedCircuit(len(rows), tuple(relations), tuple(notes))
    write_atomically(folder / CIRCUIT_FILE, dump_circuit(circuit).encode())
    return learned


def _both(entities: int) -> str:
    return "1 entity has both" if entities == 1 else f"{entities:,} entities have both"
