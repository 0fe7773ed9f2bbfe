"""Write files atomically and for their owner only, and remove files so that their content is
overwritten.

Evidence may be about people, so new files have the mode 0600 and new folders 0700, whatever the
umask. A file that exists keeps its mode.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Literal

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
PARTIAL = ".partial"
_CHUNK_BYTES = 1024 * 1024


def private_folder(folder: Path) -> None:
    """Create a folder and those above it that are missing. FileExistsError if it is a file."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    for one in reversed(missing):
        one.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
    if not missing:
        folder.mkdir(exist_ok=True)


def open_private(path: Path, mode: Literal["wb", "ab"]) -> BinaryIO:
    """Open a file for writing."""
    flags = os.O_WRONLY | os.O_CREAT | (os.O_TRUNC if mode == "wb" else os.O_APPEND)
    handle = os.open(path, flags | getattr(os, "O_BINARY", 0), PRIVATE_FILE)
    return os.fdopen(handle, mode)


def write_atomically(path: Path, content: bytes) -> None:
    """Replace ``path``. After a crash it holds either the old content or the new."""
    private_folder(path.parent)
    with atomic_file(path) as file:
        file.write(content)


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Open a temporary file that replaces ``path`` when the block ends. If the block raises, the
    temporary file is removed and ``path`` is unchanged. A link stays, and what it points to is
    replaced. A device or pipe, such as /dev/null, is written to directly: it must not be replaced
    by a file. OSError for a folder."""
    path = _target(path)
    if path.exists() and not path.is_file():
        with path.open("wb") as file:
            yield file
        return
    partial = path.with_name(f".{path.name}.{os.getpid()}{PARTIAL}")
    try:
        with open_private(partial, "wb") as file:
            if os.name == "posix" and path.exists():
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
        sync(path.parent)
    finally:
        partial.unlink(missing_ok=True)


def _target(path: Path) -> Path:
    """The file behind a link, which may not exist yet."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return target
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
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
