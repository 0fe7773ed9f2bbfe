"""Taking erased items out of the vector files of every reader that the folder ever had."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from lpf.index.files import VectorFile
from lpf.index.lookups import count_erased
from lpf.storage.evidence import EvidenceStore


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
