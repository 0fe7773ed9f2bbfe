"""The vector file and its manifest. Neither is ever trusted, and both can be made anew at will.

A file is replaced by renaming, so a crash leaves the old one, the new one, or none. What is
replaced is overwritten with zeros before it is unlinked: it may hold vectors of erased texts.

Taking erased items out of the vector files of every reader that the folder ever had.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from filelock import FileLock, Timeout

from lpf.errors import StorageError, StoreBusyError
from lpf.index.faiss_index import FaissIndex, Kind
from lpf.index.features import count_erased
from lpf.storage.atomic_files import sync, wipe
from lpf.storage.evidence import EvidenceStore
from lpf.version import __version__

FORMAT = 1
LOCK_SECONDS = 600.0  # another process may be building
STEM_DIGITS = 16
STEM = re.compile(rf"[0-9a-f]{{{STEM_DIGITS}}}")


@dataclass(frozen=True)
class Manifest:
    """What a vector file holds. ``recall`` is the measured share of the true 10 nearest that it
    finds when a query looks into ``nprobe`` of its ``lists``."""

    kind: Kind
    reader_id: str
    width: int
    count: int
    last_row_id: int
    erased_count: int
    recall: float
    recall_target: float
    nprobe: int
    lists: int
    versions: Mapping[str, str]
    sha256: str = ""
    format: int = FORMAT

    @property
    def target_reached(self) -> bool:
        return self.recall >= self.recall_target


class VectorFile:
    """``<hash of a reader's id>.faiss`` and ``.json`` in a folder."""

    def __init__(self, folder: Path, stem: str) -> None:
        self.folder = folder
        self.path = folder / f"{stem}.faiss"
        self.manifest_path = folder / f"{stem}.json"
        self._new, self._old = folder / f"{stem}.new", folder / f"{stem}.old"
        self._lock = folder / f"{stem}.lock"

    @classmethod
    def of_reader(cls, folder: Path, reader_id: str) -> VectorFile:
        return cls(folder, hashlib.sha256(reader_id.encode()).hexdigest()[:STEM_DIGITS])

    @classmethod
    def all_in(cls, folder: Path) -> list[VectorFile]:
        """Those of all readers, also where only a lock is left of one: it may be being made."""
        paths = folder.iterdir() if folder.is_dir() else ()
        stems = {path.stem for path in paths if STEM.fullmatch(path.stem)}
        return [cls(folder, stem) for stem in sorted(stems)]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Alone with the file. What a crash left behind is wiped first."""
        with self._told_plainly():
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(self._lock, timeout=LOCK_SECONDS):
                for leftover in (self._new, self._old):
                    wipe(leftover)
                yield

    def load(self) -> tuple[Manifest, FaissIndex] | None:
        """None where there is none, or one that is damaged or of another format."""
        manifest = self._read_manifest()
        if manifest is None or not self.path.is_file():
            return None
        if _sha256(self.path) != manifest.sha256:
            return None
        import faiss

        index = faiss.read_index(str(self.path))
        return manifest, FaissIndex(manifest.kind, index, manifest.nprobe)

    def save(self, index: FaissIndex, manifest: Manifest) -> Manifest:
        """Puts a new file in the place of the old. Returns the manifest with the file's hash."""
        import faiss

        faiss.write_index(index.index, str(self._new))
        sync(self._new)
        complete = Manifest(**{**asdict(manifest), "sha256": _sha256(self._new)})
        with suppress(FileNotFoundError):
            self.path.replace(self._old)
        self._new.replace(self.path)
        self._new.write_text(json.dumps(asdict(complete), indent=2, sort_keys=True) + "\n")
        sync(self._new)
        self._new.replace(self.manifest_path)
        sync(self.folder)
        wipe(self._old)
        return complete

    def discard(self) -> None:
        """Wipes the file; it is made anew when next needed."""
        wipe(self.path)
        wipe(self.manifest_path)

    def _read_manifest(self) -> Manifest | None:
        try:
            manifest = Manifest(**json.loads(self.manifest_path.read_text()))
        except (OSError, ValueError, TypeError):  # whatever is wrong, the file is made anew
            return None
        return manifest if manifest.format == FORMAT else None

    @contextmanager
    def _told_plainly(self) -> Iterator[None]:
        try:
            yield
        except Timeout as error:
            raise StoreBusyError(
                f"{self._lock}: another process held the vector file for {LOCK_SECONDS:.0f} s. "
                "Nothing was searched or changed; try again when its index is built."
            ) from error
        except (OSError, RuntimeError) as error:  # FAISS raises RuntimeError for a full disk
            raise StorageError(
                f"{self.path}: the vector file could not be read or written ({error}). Nothing "
                "was searched or changed; check the space and the permissions of its folder."
            ) from error


def versions() -> dict[str, str]:
    """Of what wrote a file, for those who look into it."""
    import faiss

    return {"lpf": __version__, "faiss": str(faiss.__version__)}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def forget_rows(store: EvidenceStore, folder: Path | str, row_ids: Sequence[int]) -> None:
    """Removes erased rows from all files in ``folder``, and what the files were from the disk. No
    reader is needed, and FAISS only where there is a file."""
    for file in VectorFile.all_in(Path(folder)):
        with file.locked():
            _forget_in(file, row_ids, count_erased(store))


def _forget_in(file: VectorFile, row_ids: Sequence[int], erased: int) -> None:
    loaded = file.load()
    if loaded is None:
        file.discard()  # whatever it was, it may hold them
        return
    manifest, index = loaded
    if erased - manifest.erased_count > len(row_ids):
        file.discard()  # others were erased that it was not told of
        return
    index.remove(np.array(row_ids, np.int64))
    file.save(index, replace(manifest, count=index.count, erased_count=erased))
