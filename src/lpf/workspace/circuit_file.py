"""The workspace's circuit: learned from known facts, kept in ``circuit.json``."""

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

FILE_NAME = "circuit.json"
LEAST_INFORMATION = 1e-6  # nats: below it, predicates are independent as far as anybody can tell


def read_circuit(folder: Path) -> CompiledCircuit | None:
    """None where none was learned: predicates are then independent."""
    path = folder / FILE_NAME
    if not path.is_file():
        return None
    try:
        return compile_circuit(load_circuit(path.read_text(encoding="utf-8")))
    except CircuitError as error:
        raise WorkspaceError(
            f"{path}: {error} Nothing was answered; learn it again with 'lpf facts learn', or "
            "remove it."
        ) from error


@dataclass(frozen=True)
class LearnedCircuit:
    """What a circuit was learned from, and how much related predicates tell about each other:
    their mutual information in nats, 0 where none was found."""

    entities: int
    information: Mapping[tuple[str, str], float]

    @property
    def found_nothing(self) -> bool:
        return all(nats < LEAST_INFORMATION for nats in self.information.values())


def learn_circuit(folder: Path, schema: Schema, facts: FactStore) -> LearnedCircuit:
    """The best tree over the schema's predicates, by the current facts, kept for the next
    opening. ConfigError where there are no facts."""
    rows = [known for _, known in facts.table()]
    if not rows:
        raise ConfigError("facts: there are none to learn from; add some with 'lpf facts add'.")
    return learn_from_rows(folder, schema, rows)


def learn_from_rows(
    folder: Path, schema: Schema, rows: Sequence[Mapping[str, str]]
) -> LearnedCircuit:
    """As ``learn_circuit``, from known values by predicate, a row an entity."""
    from lpf.circuits import DataTable, dump_circuit, learn_chow_liu

    variables = [Variable(predicate.name, predicate.values) for predicate in schema]
    priors = {predicate.name: predicate.prior for predicate in schema}
    circuit = learn_chow_liu(DataTable.from_rows(variables, rows), priors=priors)
    write_atomically(folder / FILE_NAME, dump_circuit(circuit).encode())
    compiled = compile_circuit(circuit)
    pairs = sorted({pair for one in schema.relations for pair in combinations(one.between, 2)})
    return LearnedCircuit(len(rows), {pair: mutual_information(compiled, *pair) for pair in pairs})
