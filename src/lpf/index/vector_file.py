"""Vector files with their manifests: load, save, and remove erased rows.

Files are checked on every load and can be rebuilt at any time. A file is replaced by renaming, so a
crash leaves the old one, the new one or none. The old file is overwritten with zeros before it is
removed, because it may contain vectors of erased texts.
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
from lpf.storage.atomic_files import PRIVATE_FILE, open_private, private_folder, sync, wipe
from lpf.storage.evidence import EvidenceStore
from lpf.version import __version__

FORMAT = 1
LOCK_SECONDS = 600.0  # another process may be building
STEM_DIGITS = 16
STEM = re.compile(rf"[0-9a-f]{{{STEM_DIGITS}}}")


@dataclass(frozen=True)
class Manifest:
    """Description of a vector file. ``recall`` is the measured share of the true 10 nearest
    neighbours that a query finds in ``nprobe`` of its ``lists``."""

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
    """The files ``<hash of the reader ID>.faiss`` and ``.json`` in a folder."""

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
        """The files of all readers. A lock file alone counts too: the index may just be built."""
        paths = folder.iterdir() if folder.is_dir() else ()
        stems = {path.stem for path in paths if STEM.fullmatch(path.stem)}
        return [cls(folder, stem) for stem in sorted(stems)]

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the file against other processes, and wipe what a crash left behind."""
        with self._translated_errors():
            private_folder(self.folder)
            with FileLock(self._lock, timeout=LOCK_SECONDS, mode=PRIVATE_FILE):
                for leftover in (self._new, self._old):
                    wipe(leftover)
                yield

    def load(self) -> tuple[Manifest, FaissIndex] | None:
        """None if there is no file, or if it is damaged or has another format."""
        manifest = self._read_manifest()
        if manifest is None or not self.path.is_file():
            return None
        if _sha256(self.path) != manifest.sha256:
            return None
        import faiss

        index = faiss.read_index(str(self.path))
        return manifest, FaissIndex(manifest.kind, index, manifest.nprobe)

    def save(self, index: FaissIndex, manifest: Manifest) -> Manifest:
        """Replace the file. Return the manifest with the hash of the new file."""
        import faiss

        open_private(self._new, "wb").close()  # FAISS keeps the mode of an existing file
        faiss.write_index(index.index, str(self._new))
        sync(self._new)
        complete = Manifest(**{**asdict(manifest), "sha256": _sha256(self._new)})
        with suppress(FileNotFoundError):
            self.path.replace(self._old)
        self._new.replace(self.path)
        with open_private(self._new, "wb") as file:
            file.write(json.dumps(asdict(complete), indent=2, sort_keys=True).encode() + b"\n")
        sync(self._new)
        self._new.replace(self.manifest_path)
        sync(self.folder)
        wipe(self._old)
        return complete

    def discard_unless(self, erased: int) -> None:
        """Wipe the file unless it was made when ``erased`` items had been erased."""
        with self.locked():
            manifest = self._read_manifest()
            if manifest is None or manifest.erased_count != erased:
                self.discard()

    def discard(self) -> None:
        """Wipe the file; it is rebuilt when it is needed."""
        wipe(self.path)
        wipe(self.manifest_path)

    def _read_manifest(self) -> Manifest | None:
        try:
            manifest = Manifest(**json.loads(self.manifest_path.read_text()))
        except (
            OSError,
            ValueError,
            TypeError,
            RecursionError,
        ):  # whatever is wrong, the file is rebuilt
            return None
        return manifest if manifest.format == FORMAT else None

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except Timeout as error:
            raise StoreBusyError(
                f"{self._lock}: another process has locked the vector file for {LOCK_SECONDS:.0f} "
                "s. Nothing was searched or changed; try again when it has built its index."
            ) from error
        except (OSError, RuntimeError) as error:  # FAISS raises RuntimeError for a full disk
            raise StorageError(
                f"{self.path}: the vector file could not be read or written ({error}). Nothing "
                "was searched or changed; check disk space and the permissions of its folder."
            ) from error


def versions() -> dict[str, str]:
    """Versions of the software that writes a file."""
    import faiss

    return {"lpf": __version__, "faiss": str(faiss.__version__)}


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def forget_rows(
    store: EvidenceStore, folder: Path | str, row_ids: Sequence[int], items: int | None = None
) -> None:
    """Remove erased rows from all vector files in ``folder``, and wipe the old files. The rows are
    those of ``items`` items (None: one row each). Needs no reader, and FAISS only if there is a
    file."""
    count = len(row_ids) if items is None else items
    for file in VectorFile.all_in(Path(folder)):
        with file.locked():
            _forget_rows(file, row_ids, count, count_erased(store))


def _forget_rows(file: VectorFile, row_ids: Sequence[int], items: int, erased: int) -> None:
    loaded = file.load()
    if loaded is None:
        file.discard()  # it is damaged, but may contain the rows
        return
    manifest, index = loaded
    if erased - manifest.erased_count > items:
        file.discard()  # other rows were erased without being removed from the file
        return
    index.remove(np.array(row_ids, np.int64))
    file.save(index, replace(manifest, count=index.count, erased_count=erased))
