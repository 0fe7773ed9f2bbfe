"""Results on disk, each under the key of its cell."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from lpf.errors import StorageError
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.specs import Cell
from lpf.storage.atomic_files import whole_file

# What NumPy, ZIP and JSON raise for bytes that are not as they were written.
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
    """A folder of answers. Several processes may keep results in it at once."""

    folder: Path

    def has(self, cell: Cell) -> bool:
        return self._path(cell).is_file()

    def save(self, cell: Cell, answered: Predictions) -> None:
        path = self._path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            answered.write(file)

    def load(self, cell: Cell) -> Predictions:
        """StorageError where there is no result, or its file is not one of ours."""
        path = self._path(cell)
        try:
            with path.open("rb") as file:
                return Predictions.read(file)
        except FileNotFoundError as error:
            raise StorageError(
                f"{path}: is not there, so nothing can be said of {cell.method!r}. Run it first."
            ) from error
        except UNREADABLE as error:
            raise StorageError(
                f"{path}: holds no answers that can be read ({error}). Nothing was judged. Remove "
                "it and repeat: it is computed again."
            ) from error

    def missing(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those without a result, each once, in order. A crash is a result."""
        there = self._keys()
        return [cell for cell in dict.fromkeys(cells) if cell.key not in there]

    def delete(self, cell: Cell) -> None:
        """So that it is computed again."""
        self._path(cell).unlink(missing_ok=True)

    def _keys(self) -> set[str]:
        """One look at the folder is cheaper than one at each file."""
        return {path.stem for path in (self.folder / "answers").glob("*.npz")}

    def _path(self, cell: Cell) -> Path:
        return self.folder / "answers" / f"{cell.key}.npz"
