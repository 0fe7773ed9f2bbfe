"""The models of a workspace: folders named by the hash of their content; one of them answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lpf.errors import LPFError, ReplayError, WorkspaceError
from lpf.model.artefact import CONFIG_FILE, Artefact, ModelCard, load_model, save_model
from lpf.model.config import ModelConfig
from lpf.storage.atomic_files import write_atomically
from lpf.types import Float32Array

ACTIVE = "active"


class Models:
    """The folders ``models/<version>/``; ``models/active`` names the one that answers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def versions(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def active(self) -> str | None:
        path = self._folder / ACTIVE
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None

    def created_at(self, version: str) -> datetime | None:
        """When the model was written to this workspace, or None if it has no such model."""
        path = self._folder / version / CONFIG_FILE
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.is_file() else None

    def load(self, version: str) -> Artefact:
        if version not in self.versions():
            raise WorkspaceError(
                f"{self._folder} has no model {version!r}; choose from {self.versions()}."
            )
        return load_model(self._folder / version)

    def load_recorded(self, version: str | None) -> Artefact:
        """The model of an old record. ReplayError if it was removed."""
        if version is None or version not in self.versions():
            raise ReplayError(
                f"the recorded model {version!r} is no longer in {self._folder}. Put its folder "
                "back to recompute from texts; replay without --deep needs no model."
            )
        return load_model(self._folder / version)

    def add(self, source: Path) -> str:
        """Check a model folder, copy it into the workspace and return its version."""
        artefact = load_model(source)
        return save_model(
            self._folder, artefact.config, artefact.tensors, artefact.card, artefact.tuned
        )

    def save(
        self, config: ModelConfig, tensors: Mapping[str, Float32Array], card: ModelCard
    ) -> str:
        """Write a model and return its version."""
        return save_model(self._folder, config, tensors, card)

    def use(self, version: str) -> None:
        """Answer with this model from now on."""
        self.load(version)
        write_atomically(self._folder / ACTIVE, f"{version}\n".encode())


@dataclass(frozen=True)
class PreviousModel:
    """The model that answered before a new one was trained.

    ``nll`` has, by predicate, its NLL and the new model's on held-out entities at ``place``, such
    as ``test/spn``. It is empty if the models were not scored on data sets of one name;
    ``same_data`` is True if these also have the same content.
    """

    version: str
    place: str | None = None
    nll: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    same_data: bool = False


def previous_model(models: Models, version: str, card: ModelCard) -> PreviousModel:
    """Compare model ``version`` with the new one that has ``card``. A model that cannot be loaded
    is named but not compared."""
    try:
        before = models.load(version).card
    except LPFError:
        return PreviousModel(version)
    old, new = before.held_out(), card.held_out()
    same_name = before.data_name is not None and before.data_name == card.data_name
    if not old or not new or old[0].data != new[0].data or not same_name:
        return PreviousModel(version)
    old_nll = {score.predicate: score.metrics["nll"] for score in old if "nll" in score.metrics}
    nll = {
        one.predicate: (old_nll[one.predicate], one.metrics["nll"])
        for one in new
        if "nll" in one.metrics and one.predicate in old_nll
    }
    same_data = before.data_digest is not None and before.data_digest == card.data_digest
    return PreviousModel(version, new[0].place, nll, same_data)
