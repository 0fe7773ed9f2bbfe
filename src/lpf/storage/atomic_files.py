"""Write files atomically, and remove files so that their content is overwritten."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1024 * 1024


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path``. After a crash it holds either the old content or the new."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends. If the block raises, the
    temporary file is removed and ``path`` is unchanged. A link stays, and what it points to is
    replaced. OSError for a folder, a device or a pipe, which must never be replaced."""
    path = _replaceable(path)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _replaceable(path: Path) -> Path:
    """The file behind ``path``, which may not exist yet."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "Not a regular file; it was not replaced", str(path))
    return target


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to disk, so that they survive a power cut."""
    if os.name != "posix" and path.is_dir():
        return  # Windows cannot open folders, and does not need this for them
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def wipe(path: Path) -> None:
    """Overwrite a file with zeros and remove it. Does nothing if the file does not exist."""
    try:
        left = path.stat().st_size
    except FileNotFoundError:
        return
    with path.open("r+b") as file:
        while left > 0:
            left -= file.write(bytes(min(left, _CHUNK_BYTES)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()
    sync(path.parent)
