"""Stored results: one file per cell, named by its key."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import StorageError
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell
from lpf.storage.atomic_files import atomic_file

# What NumPy, ZIP and JSON raise for a corrupted file.
UNREADABLE = (
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    KeyError,
    NotImplementedError,
    TypeError,
    ValueError,
)


@dataclass(frozen=True)
class ResultStore:
    """A folder of predictions. Several processes may write to it at the same time."""

    folder: Path

    def has(self, cell: Cell) -> bool:
        return self._path(cell).is_file()

    def save(self, cell: Cell, predictions: Predictions) -> None:
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_file(path) as file:
            predictions.write(file)

    def load(self, cell: Cell) -> Predictions:
        """StorageError if there is no result, or its file is corrupted."""
        path = self._path(cell)
        try:
            with path.open("rb") as file:
                return Predictions.read(file)
        except FileNotFoundError as error:
            raise StorageError(
                f"{path} is missing: there is no result of {cell.method!r} yet.",
                hint="Run it first.",
            ) from error
        except UNREADABLE as error:
            raise StorageError(
                f"{path} is corrupted ({error}). Nothing was scored.",
                hint="Remove it and repeat: it is computed again.",
            ) from error

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Cells without a result, each once, in order. A failed run is a result."""
        stored_keys = self._keys()
        return [cell for cell in dict.fromkeys(cells) if cell.key not in stored_keys]

    def delete(self, cell: Cell) -> None:
        """The cell is computed again when it is next needed."""
        self._path(cell).unlink(missing_ok=True)

    def _keys(self) -> set[str]:
        """Listing the folder is cheaper than one look-up per cell."""
        return {path.stem for path in (self.folder / "answers").glob("*.npz")}

    def _path(self, cell: Cell) -> Path:
        return self.folder / "answers" / f"{cell.key}.npz"
