"""The model card: what a model was made from, how good it is, what it is for and what it is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from lpf.errors import ArtefactFormatError


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

    def to_markdown(self) -> str:
        """The card for people."""
        metrics = [f"- {name}: {value:.6g}" for name, value in self.metrics.items()]
        sections = {
            "Data": [self.data],
            "Metrics": metrics or ["None were recorded."],
            "Intended use": [self.intended_use],
            "Unsuitable use": [self.unsuitable_use],
            "Notes": [f"- {note}" for note in self.notes],
        }
        body = [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items() if lines]
        return f"# {self.name}\n\n" + "\n\n".join(body) + "\n"
