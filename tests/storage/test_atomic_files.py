"""Atomic writes, and files that are overwritten before they are removed."""

from __future__ import annotations

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lpf.storage.atomic_files import wipe, write_atomically


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "made" / "here" / "a.bin"
    for content in (b"first", b"", b"second\x00"):
        write_atomically(path, content)
        assert path.read_bytes() == content
    assert [each.name for each in path.parent.iterdir()] == ["a.bin"]


def test_an_interrupted_write_leaves_the_old_content(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.bin"
    write_atomically(path, b"old")

    def no_space(_: int) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("size", [0, 5, 1024 * 1024, 3 * 1024 * 1024 + 7])
def test_a_wiped_file_is_overwritten_before_it_is_removed(tmp_path: Path, size: int) -> None:
    path, same = tmp_path / "a.bin", tmp_path / "same.bin"
    path.write_bytes(b"x" * size)
    os.link(path, same)  # another name of the same blocks, to see what happens to them
    wipe(path)
    assert not path.exists()
    assert same.read_bytes() == bytes(size)


def test_wiping_a_missing_file_does_nothing(tmp_path: Path) -> None:
    wipe(tmp_path / "absent")


def test_a_link_stays_and_what_it_points_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"old")
    (tmp_path / "link").symlink_to("file")
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_folder_or_a_link_without_an_end_is_refused(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("folder", "loop", "."):
        with pytest.raises(OSError, match=r"\w") as caught:
            write_atomically(tmp_path / name, b"new")
        assert caught.value.filename
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "loop"]


@pytest.mark.skipif(os.name != "posix", reason="POSIX permissions")
def test_new_files_and_folders_are_for_their_owner_only(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        write_atomically(tmp_path / "a" / "b" / "new", b"1")
    finally:
        os.umask(old)
    new = tmp_path / "a" / "b" / "new"
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (new, new.parent, new.parent.parent)]
    assert modes == [0o600, 0o700, 0o700]
    new.chmod(0o640)
    write_atomically(new, b"2")
    assert (stat.S_IMODE(new.stat().st_mode), new.read_bytes()) == (0o640, b"2")


@pytest.mark.skipif(os.name != "posix", reason="named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        received = pool.submit(pipe.read_bytes)
        write_atomically(pipe, b"content")
        assert received.result(timeout=10) == b"content"
    assert pipe.is_fifo()
