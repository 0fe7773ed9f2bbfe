"""The known facts of a generated data set, as a file that ``lpf facts add`` takes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lpf.datasets.dataset import Dataset
from lpf.domains.assembly import reference_date
from lpf.domains.declaration import Domain
from lpf.storage.files import write_atomically

SOURCE = "generator"


def known_facts(domain: Domain, dataset: Dataset) -> Iterator[dict[str, str]]:
    """A row a fact; each held at the moment its entity is judged at."""
    for entity in dataset:
        moment = reference_date(domain, entity.fields).isoformat()
        for predicate, value in entity.facts.items():
            yield {
                "entity_id": entity.entity_id,
                "predicate": predicate,
                "value": value,
                "timestamp": moment,
                "source": SOURCE,
            }


def write_facts(path: str | Path, domain: Domain, dataset: Dataset) -> int:
    """Writes JSONL, replacing the file as a whole; says how many facts it holds."""
    lines = [json.dumps(row) + "\n" for row in known_facts(domain, dataset)]
    write_atomically(Path(path), "".join(lines).encode())
    return len(lines)
