"""The workspace's circuit: learned from known facts, stored in ``circuit.json``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from lpf.storage.facts import FactStore

CIRCUIT_FILE = "circuit.json"
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


@dataclass(frozen=True)
class LearnedCircuit:
    """How many entities a circuit was learned from, and the mutual information of related
    predicates in nats (0 for none)."""

    entities: int
    information: Mapping[tuple[str, str], float]

    @property
    def found_nothing(self) -> bool:
        return all(nats < LEAST_INFORMATION for nats in self.information.values())


def learn_circuit(folder: Path, schema: Schema, facts: FactStore) -> LearnedCircuit:
    """Learn the best tree over the schema's predicates from the current facts and store it.
    ConfigError if there are no facts."""
    rows = [known for _, known in facts.table()]
    if not rows:
        raise ConfigError("facts: there are none to learn from; add some with 'lpf facts add'.")
    return learn_from_rows(folder, schema, rows)


def learn_from_rows(
    folder: Path, schema: Schema, rows: Sequence[Mapping[str, str]]
) -> LearnedCircuit:
    """As ``learn_circuit``, from one row per entity: known values by predicate."""
    from lpf.circuits import DataTable, dump_circuit, learn_chow_liu

    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    priors = {predicate.name: predicate.prior for predicate in schema}
    circuit = learn_chow_liu(DataTable.from_rows(variables, rows), priors=priors)
    write_atomically(folder / CIRCUIT_FILE, dump_circuit(circuit).encode())
    compiled = compile_circuit(circuit)
    pairs = sorted(
        {pair for relation in schema.relations for pair in combinations(relation.between, 2)}
    )
    return LearnedCircuit(len(rows), {pair: mutual_information(compiled, *pair) for pair in pairs})
