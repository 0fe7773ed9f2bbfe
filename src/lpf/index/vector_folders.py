"""What workspaces hold outside the store: search indexes, feature caches and rejected rows.

Several workspaces may use one store. Each is listed in the store before it writes its first copy of
a vector or rejects a row, with the number of items that had been erased when it was last cleaned.
An erasure cleans the folders that it can reach; the others remove their copies of vectors when they
are next used. Rejected rows that could not be reached have to be deleted by hand: an erased text is
no longer known, so nothing can find it there.
"""

from __future__ import annotations

import hashlib
import os
import re
import socket
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import bindparam, delete, insert, select

from lpf.errors import StorageError, StoreReadOnlyError
from lpf.index.features import count_erased
from lpf.index.vector_file import VectorFile, forget_rows
from lpf.storage.atomic_files import PARTIAL, wipe
from lpf.storage.evidence import EvidenceStore
from lpf.storage.statements import Prepared
from lpf.storage.tables import vector_folders
from lpf.storage.values import now_micros

VECTORS = "vectors"
FEATURE_CACHES = Path("searches", "features")
_PARTIAL = re.compile(rf"\..*\.(\d+){re.escape(PARTIAL)}")

_COLUMNS = tuple(vector_folders.c.keys())
_ALL = Prepared(
    select(
        vector_folders.c.folder_id,
        vector_folders.c.host,
        vector_folders.c.path,
        vector_folders.c.erased_count,
    ).order_by(vector_folders.c.path)
)
_PUT = Prepared(insert(vector_folders).values({n: bindparam(n) for n in _COLUMNS}), *_COLUMNS)
_REMOVE = Prepared(
    delete(vector_folders).where(vector_folders.c.folder_id == bindparam("folder")), "folder"
)


@dataclass(frozen=True, slots=True)
class ListedFolder:
    """A workspace with copies or rejected rows. ``erased_count`` is -1 if it cannot be read."""

    folder_id: str
    host: str
    path: str
    erased_count: int

    @property
    def is_here(self) -> bool:
        return self.host == socket.gethostname()

    def __str__(self) -> str:
        return self.path if self.is_here else f"{self.path} on {self.host}"


class VectorFolders:
    """The copies in the workspace ``folder``, and those listed in its store."""

    def __init__(self, store: EvidenceStore, folder: Path) -> None:
        self._store = store
        self._folder = folder.resolve()
        self._host = socket.gethostname()
        name = f"{self._host}\n{self._folder}".encode()
        self._id = hashlib.sha256(name).hexdigest()[:16]

    def register(self) -> None:
        """List this workspace, before it writes a copy or rejects a row."""
        if all(listed.folder_id != self._id for listed in self._listed()):
            self._put(self._id, self._host, str(self._folder), count_erased(self._store))

    def follow(self, has_rejects: bool = False) -> None:
        """If items were erased elsewhere since the last time, remove the copies in this workspace.
        They are made again when they are needed. While it has rejected rows from that time, it
        stays listed as not cleaned."""
        own = [listed for listed in self._listed() if listed.folder_id == self._id]
        if not own and not has_rejects and not any(self._copies()):
            return
        erased = count_erased(self._store)
        if own and own[0].erased_count >= erased:
            return
        if erased:
            for file in VectorFile.all_in(self._folder / VECTORS):
                file.discard_unless(erased)
            _wipe_caches(self._folder)
        if own and has_rejects:
            return
        try:
            self._put(self._id, self._host, str(self._folder), erased)
        except StoreReadOnlyError:
            return  # nothing can be erased from this store either

    def forget(
        self, row_ids: Sequence[int], items: int, with_rejects: Collection[Path] = ()
    ) -> list[str]:
        """Remove erased rows of ``items`` items from all copies that can be reached. Returns what
        remains, and how to remove it. The workspaces ``with_rejects`` stay listed as not cleaned:
        their rejected rows may still hold an erased text."""
        erased = count_erased(self._store)
        _clean(self._store, self._folder, row_ids, items)
        if any(listed.folder_id == self._id for listed in self._listed()):
            self._put(self._id, self._host, str(self._folder), erased)
        remaining = []
        for listed in self.behind():
            path = Path(listed.path)
            if listed.is_here and not _may_exist(path):
                self._remove(listed.folder_id)
                continue
            problem = "it is not on this machine"
            if listed.is_here:
                try:
                    _clean(self._store, path, row_ids, items)
                    if path not in with_rejects:
                        self._put(listed.folder_id, listed.host, listed.path, erased)
                    continue
                except (OSError, StorageError) as error:
                    problem = str(error).rstrip(".")
            remaining.append(
                f"the workspace {listed} uses the same store and may hold copies of the vectors, "
                f"and the text in its rejects files; they could not be removed ({problem}). Delete "
                "its folder 'rejects'. The vectors are removed when that workspace is next used, "
                "for example by 'lpf evidence list'; then erase the same items again."
            )
        return remaining

    def behind(self) -> list[ListedFolder]:
        """Other workspaces whose copies may hold erased items."""
        erased = count_erased(self._store)
        others = [listed for listed in self._listed() if listed.folder_id != self._id]
        return [listed for listed in others if listed.erased_count < erased]

    def neighbours(self) -> list[Path]:
        """The folders of other workspaces on this machine."""
        others = [listed for listed in self._listed() if listed.folder_id != self._id]
        return [Path(one.path) for one in others if one.is_here and _may_exist(Path(one.path))]

    def _copies(self) -> Iterator[Path]:
        for place in (self._folder / VECTORS, self._folder / FEATURE_CACHES):
            if place.is_dir():
                yield from place.iterdir()

    def _listed(self) -> list[ListedFolder]:
        return [
            ListedFolder(
                str(folder), str(host), str(path), erased if isinstance(erased, int) else -1
            )
            for folder, host, path, erased in self._store.database.rows(_ALL)
        ]

    def _put(self, folder_id: str, host: str, path: str, erased: int) -> None:
        database = self._store.database
        with database.transaction() as connection:
            database.run(connection, _REMOVE, (folder_id,))
            database.run(connection, _PUT, (folder_id, host, path, erased, now_micros()))

    def _remove(self, folder_id: str) -> None:
        with self._store.database.transaction() as connection:
            self._store.database.run(connection, _REMOVE, (folder_id,))


def _clean(store: EvidenceStore, folder: Path, row_ids: Sequence[int], items: int) -> None:
    forget_rows(store, folder / VECTORS, row_ids, items)
    _wipe_caches(folder)


def _wipe_caches(folder: Path) -> None:
    """Feature caches are named after whole data sets, so all of them are removed; so is what
    processes that no longer run left behind among them and among the indexes. Other folders are not
    touched: they may hold files of other programs, or of processes on other machines."""
    caches, indexes = folder / FEATURE_CACHES, folder / VECTORS
    for path in caches.iterdir() if caches.is_dir() else ():
        if not _is_being_written(path):
            wipe(path)
    for path in indexes.rglob(f".*{PARTIAL}"):
        if not _is_being_written(path):
            wipe(path)


def _may_exist(folder: Path) -> bool:
    """Return False only if there is no such folder: one that may not be looked at may exist."""
    try:
        return folder.is_dir()
    except OSError:
        return True


def _is_being_written(path: Path) -> bool:
    """Return True for the temporary file of a process that still runs."""
    matched = _PARTIAL.fullmatch(path.name)
    if matched is None:
        return False
    try:
        os.kill(int(matched[1]), 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, for another user
        return True
    return True
