"""Atomic writes, and files that are overwritten before they are removed."""

from __future__ import annotations

import os
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


def test_only_regular_files_are_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "to-pipe").symlink_to("pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    for name in ("pipe", "to-pipe", "folder", "loop", "."):
        with pytest.raises(OSError, match=r"\w") as caught:
            write_atomically(tmp_path / name, b"new")
        assert caught.value.filename
    assert (tmp_path / "pipe").is_fifo()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "loop", "pipe", "to-pipe"]
