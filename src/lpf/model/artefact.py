"""A trained model on disk: a folder of three files, named by the hash of their content.

    <version>/config.json          what the model is made of
    <version>/card.json            the model card
    <version>/weights.safetensors  the tensors

Loading reads JSON and raw numbers and nothing else: no file of ours can run code.

The model card: what a model was made from, how good it is, what it is for and what it is not.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lpf.errors import ArtefactFormatError, ArtefactHashError, ArtefactTensorError, ConfigError
from lpf.model.config import ModelConfig
from lpf.model.runtime import Runtime, check_tensors
from lpf.types import Float32Array

# Where a model is judged, the best first: each is entities that it has seen less of than the next.
TEST, VALIDATION, OUT_OF_FOLD = "test/spn", "validation/spn", "out of fold/spn"
JUDGED_BY = (TEST, VALIDATION, OUT_OF_FOLD)
# How ``data`` begins; its name may hold colons itself.
PARTS = 4  # of a metric's name, such as level/test/spn/ece
DATA = re.compile(r"(?P<name>.*): (?P<entities>\d+) entities\b", re.DOTALL)
DIGEST = re.compile(r"sha256 ([0-9a-f]{16})\.$")


@dataclass(frozen=True)
class ModelCard:
    """Kept beside the weights and covered by the model's version.

    No clock and no machine in it: training twice from the same data and seed gives the same card.
    """

    name: str
    data: str
    intended_use: str
    unsuitable_use: str
    metrics: Mapping[str, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> ModelCard:
        try:
            plain = dict(document)
            return cls(**{**plain, "notes": tuple(plain.get("notes", ()))})
        except TypeError as error:
            raise ArtefactFormatError(f"model card: {error}.") from error

    @property
    def data_name(self) -> str | None:
        """Of the data set; None where ``data`` is in other words."""
        found = DATA.match(self.data)
        return None if found is None else found["name"]

    @property
    def entities(self) -> int | None:
        """How many the data set has, likewise."""
        found = DATA.match(self.data)
        return None if found is None else int(found["entities"])

    @property
    def data_digest(self) -> str | None:
        """The start of the data set's, likewise."""
        found = DIGEST.search(self.data)
        return None if found is None else found[1]

    def scores(self) -> dict[str, dict[str, dict[str, float]]]:
        """Metrics of whole entities by predicate, then by place such as "test/spn"."""
        found: dict[str, dict[str, dict[str, float]]] = {}
        for path, number in self.metrics.items():
            parts = path.rsplit("/", PARTS - 1)
            if len(parts) == PARTS:
                predicate, data, variant, name = parts
                by_place = found.setdefault(predicate, {})
                by_place.setdefault(f"{data}/{variant}", {})[name] = number
        return found

    def held_out(self) -> tuple[str, dict[str, dict[str, float]]] | None:
        """The place it is to be judged by, and its metrics there by predicate; None where it was
        not judged."""
        scores = self.scores()
        for place in JUDGED_BY:
            found = {name: places[place] for name, places in scores.items() if place in places}
            if found:
                return place, found
        return None

    def to_markdown(self, predicates: Mapping[str, Sequence[str]] | None = None) -> str:
        """The card for people. ``predicates`` with their values are those of the model."""
        questions = [
            f"- {name}: {', '.join(values)}" for name, values in (predicates or {}).items()
        ]
        metrics = [f"- {name}: {value:.6g}" for name, value in self.metrics.items()]
        sections = {
            "Data": [self.data],
            "Metrics": metrics or ["None were recorded."],
            "Intended use": [self.intended_use],
            "Unsuitable use": [self.unsuitable_use],
            "Predicates": questions,
            "Notes": [f"- {note}" for note in self.notes],
        }
        body = [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items() if lines]
        return f"# {self.name}\n\n" + "\n\n".join(body) + "\n"


FORMAT = "lpf-model/1"
CONFIG_FILE, CARD_FILE, WEIGHTS_FILE = "config.json", "card.json", "weights.safetensors"
FILES = (CONFIG_FILE, CARD_FILE, WEIGHTS_FILE)
VERSION_DIGITS = 16


@dataclass(frozen=True)
class Artefact:
    """Everything that was loaded, with the version that was checked."""

    version: str
    config: ModelConfig
    card: ModelCard
    tensors: Mapping[str, Float32Array]

    def runtime(self) -> Runtime:
        return Runtime(self.config, self.tensors, self.version)


def save_model(
    models: Path, config: ModelConfig, tensors: Mapping[str, Float32Array], card: ModelCard
) -> str:
    """Writes ``models/<version>`` in one move and returns the version. The same model again is
    the same version, and nothing is written."""
    from safetensors.numpy import save

    check_tensors(config, tensors)
    contents = {
        CONFIG_FILE: _canonical({"format": FORMAT, **config.to_dict()}),
        CARD_FILE: _canonical(card.to_dict()),
        WEIGHTS_FILE: save(dict(sorted(tensors.items()))),
    }
    version = _version(contents)
    if not (models / version).exists():
        _write_folder(models, version, contents)
    return version


def load_model(folder: Path) -> Artefact:
    """Reads and checks a model. ArtefactError says which file or tensor is wrong; nothing of a
    model that fails is used."""
    contents = {name: _read(folder / name) for name in FILES}
    version = _version(contents)
    if folder.name != version:
        raise ArtefactHashError(
            f"{folder}: the content hashes to {version}, the folder is named {folder.name}. A file "
            "was changed or the folder renamed; get the model again from where it was made."
        )
    config = _parse_config(contents[CONFIG_FILE], folder / CONFIG_FILE)
    card = ModelCard.from_dict(_parse_json(contents[CARD_FILE], folder / CARD_FILE))
    tensors = _parse_tensors(contents[WEIGHTS_FILE], folder / WEIGHTS_FILE, config)
    return Artefact(version, config, card, tensors)


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True).encode() + b"\n"


def _version(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(FORMAT.encode())
    for name in FILES:
        digest.update(len(contents[name]).to_bytes(8, "little"))
        digest.update(contents[name])
    return digest.hexdigest()[:VERSION_DIGITS]


def _write_folder(models: Path, version: str, contents: Mapping[str, bytes]) -> None:
    """All files first, then one rename: another process sees a whole model or none."""
    models.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".incoming-", dir=models))
    try:
        for name, content in contents.items():
            with (staging / name).open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        staging.chmod(0o755)
        staging.rename(models / version)
    except OSError:
        # Somebody else finished the same version first; theirs is as good as ours.
        if not (models / version).exists():
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ArtefactFormatError(
            f"{path}: is missing. A model is a folder with {', '.join(FILES)}; other formats, "
            "pickles among them, are never read."
        ) from None


def _parse_json(content: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except ValueError as error:
        raise ArtefactFormatError(f"{path}: not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise ArtefactFormatError(f"{path}: must hold one JSON object.")
    return document


def _parse_config(content: bytes, path: Path) -> ModelConfig:
    document = _parse_json(content, path)
    found = document.pop("format", None)
    if found != FORMAT:
        raise ArtefactFormatError(f"{path}: format is {found!r}, this version reads {FORMAT!r}.")
    try:
        return ModelConfig.from_dict(document)
    except ConfigError as error:
        raise ArtefactFormatError(f"{path}: {error}") from error


def _parse_tensors(content: bytes, path: Path, config: ModelConfig) -> dict[str, Float32Array]:
    from safetensors import SafetensorError
    from safetensors.numpy import load

    try:
        tensors = load(content)
    except (SafetensorError, KeyError, ValueError) as error:
        raise ArtefactFormatError(f"{path}: not a safetensors file: {error}.") from error
    try:
        check_tensors(config, tensors)
    except ArtefactTensorError as error:
        raise ArtefactTensorError(f"{path}: {error}") from error
    return tensors
