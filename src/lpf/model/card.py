"""The model card: what a model was made from, how good it is, what it is for and what it is not."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from lpf.errors import ArtefactFormatError

# Where a model is judged, the best first: each is entities that it has seen less of than the next.
TEST, VALIDATION, OUT_OF_FOLD = "test/spn", "validation/spn", "out of fold/spn"
JUDGED_BY = (TEST, VALIDATION, OUT_OF_FOLD)
# How ``data`` begins; its name may hold colons itself.
PARTS = 4  # of a metric's name, such as level/test/spn/ece
DATA = re.compile(r"(?P<name>.*): (?P<entities>\d+) entities\b", re.DOTALL)
DIGEST = re.compile(r"sha256 ([0-9a-f]{16})\.$")


@dataclass(frozen=True)
class ModelCard:
    """Kept beside the weights and covered by the model's version.

    No clock and no machine in it: training twice from the same data and seed gives the same card.
    """

    name: str
    data: str
    intended_use: str
    unsuitable_use: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ModelCard:
        try:
            plain = dict(document)
            return cls(**{**plain, "notes": tuple(plain.get("notes", ()))})
        except TypeError as error:
            raise ArtefactFormatError(f"model card: {error}.") from error

    @property
    def data_name(self) -> str | None:
        """Of the data set; None where ``data`` is in other words."""
        found = DATA.match(self.data)
        return None if found is None else found["name"]

    @property
    def entities(self) -> int | None:
        """How many the data set has, likewise."""
        found = DATA.match(self.data)
        return None if found is None else int(found["entities"])

    @property
    def data_digest(self) -> str | None:
        """The start of the data set's, likewise."""
        found = DIGEST.search(self.data)
        return None if found is None else found[1]

    def scores(self) -> dict[str, dict[str, dict[str, float]]]:
        """Metrics of whole entities by predicate, then by place such as "test/spn"."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for path, number in self.metrics.items():
            parts = path.rsplit("/", PARTS - 1)
            if len(parts) == PARTS:
                predicate, data, variant, name = parts
                by_place = found.setdefault(predicate, {})
                by_place.setdefault(f"{data}/{variant}", {})[name] = number
        return found

    def held_out(self) -> tuple[str, dict[str, dict[str, float]]] | None:
        """The place it is to be judged by, and its metrics there by predicate; None where it was
        not judged."""
        scores = self.scores()
        for place in JUDGED_BY:
            found = {name: places[place] for name, places in scores.items() if place in places}
            if found:
                return place, found
        return None

    def to_markdown(self, predicates: Mapping[str, Sequence[str]] | None = None) -> str:
        """The card for people. ``predicates`` with their values are those of the model."""
        questions = [
            f"- {name}: {', '.join(values)}" for name, values in (predicates or {}).items()
        ]
        metrics = [f"- {name}: {value:.6g}" for name, value in self.metrics.items()]
        sections = {
            "Data": [self.data],
            "Metrics": metrics or ["None were recorded."],
            "Intended use": [self.intended_use],
            "Unsuitable use": [self.unsuitable_use],
            "Predicates": questions,
            "Notes": [f"- {note}" for note in self.notes],
        }
        body = [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items() if lines]
        return f"# {self.name}\n\n" + "\n\n".join(body) + "\n"
