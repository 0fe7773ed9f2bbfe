"""The models of a workspace: folders named by the hash of their content, one of them in use.

The model that answered before a new one was trained, and how both did.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lpf.errors import LPFError, ReplayError, WorkspaceError
from lpf.model.artefact import CONFIG_FILE, Artefact, ModelCard, load_model, save_model
from lpf.storage.atomic_files import write_atomically

ACTIVE = "active"


class Models:
    """``models/<version>/`` and the name of the one in use, in ``models/active``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def versions(self) -> list[str]:
        if not self._folder.is_dir():
            return []
        return sorted(path.name for path in self._folder.iterdir() if path.is_dir())

    def active(self) -> str | None:
        path = self._folder / ACTIVE
        return path.read_text(encoding="utf-8").strip() if path.is_file() else None

    def made(self, version: str) -> datetime | None:
        """When its files were written here; None where they are not."""
        path = self._folder / version / CONFIG_FILE
        return datetime.fromtimestamp(path.stat().st_mtime, UTC) if path.is_file() else None

    def load(self, version: str) -> Artefact:
        if version not in self.versions():
            raise WorkspaceError(
                f"{self._folder}: has no model {version!r}; it has {self.versions()}."
            )
        return load_model(self._folder / version)

    def load_recorded(self, version: str | None) -> Artefact:
        """The model of an old record. ReplayError where it is gone."""
        if version is None or version not in self.versions():
            raise ReplayError(
                f"the recorded model {version!r} is not in {self._folder} any more. Put its folder "
                "back to recompute from texts; replay without --deep needs no model."
            )
        return load_model(self._folder / version)

    def add(self, source: Path) -> str:
        """Copies a model folder in, after checking it, and returns its version."""
        artefact = load_model(source)
        return save_model(self._folder, artefact.config, artefact.tensors, artefact.card)

    def use(self, version: str) -> None:
        """Makes a model the one that answers."""
        self.load(version)
        write_atomically(self._folder / ACTIVE, f"{version}\n".encode())


@dataclass(frozen=True)
class PreviousModel:
    """``nll`` is, by predicate, that of the earlier model and that of the new one on held-out
    entities at ``place`` ("test/spn") of data of one name; empty where they were not judged alike.
    ``same_data`` is whether these data have the same content, too."""

    version: str
    place: str | None = None
    nll: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    same_data: bool = False


def previous_model(models: Models, version: str, card: ModelCard) -> PreviousModel:
    """``card`` is the new one's. A model that cannot be loaded is named and not compared."""
    try:
        before = models.load(version).card
    except LPFError:
        return PreviousModel(version)
    judged, now = before.held_out(), card.held_out()
    alike = before.data_name is not None and before.data_name == card.data_name
    if judged is None or now is None or judged[0] != now[0] or not alike:
        return PreviousModel(version)
    losses = {
        name: (judged[1][name]["nll"], found["nll"])
        for name, found in now[1].items()
        if "nll" in found and "nll" in judged[1].get(name, {})
    }
    same = before.data_digest is not None and before.data_digest == card.data_digest
    return PreviousModel(version, now[0], losses, same)
