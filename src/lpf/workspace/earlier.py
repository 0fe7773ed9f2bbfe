"""The model that answered before a new one was trained, and how both did."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from lpf.errors import LPFError
from lpf.model.card import ModelCard
from lpf.workspace.models import Models


@dataclass(frozen=True)
class Earlier:
    """``nll`` is, by predicate, that of the earlier model and that of the new one on held-out
    entities at ``place`` ("test/spn") of data of one name; empty where they were not judged alike.
    ``same_data`` is whether these data have the same content, too."""

    version: str
    place: str | None = None
    nll: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    same_data: bool = False


def earlier_model(models: Models, version: str, card: ModelCard) -> Earlier:
    """``card`` is the new one's. A model that cannot be loaded is named and not compared."""
    try:
        before = models.load(version).card
    except LPFError:
        return Earlier(version)
    judged, now = before.held_out(), card.held_out()
    alike = before.data_name is not None and before.data_name == card.data_name
    if judged is None or now is None or judged[0] != now[0] or not alike:
        return Earlier(version)
    losses = {
        name: (judged[1][name]["nll"], found["nll"])
        for name, found in now[1].items()
        if "nll" in found and "nll" in judged[1].get(name, {})
    }
    same = before.data_digest is not None and before.data_digest == card.data_digest
    return Earlier(version, now[0], losses, same)
