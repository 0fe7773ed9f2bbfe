"""A trained model on disk: a folder of three files, named by the hash of their content.

    <version>/config.json          the shape of the networks and the fitted parameters
    <version>/card.json            the model card: training data, metrics, intended use, notes
    <version>/weights.safetensors  the tensors
    <version>/reader/              the reader that was tuned together with it, if one was

The version does not cover the tuned reader itself, but its hash, which is in ``config.json``.
Loading reads JSON and raw numbers only, so a model file cannot run code.
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
from typing import Any, Literal, get_args

from lpf.errors import ArtefactFormatError, ArtefactHashError, ArtefactTensorError, ConfigError
from lpf.model.config import ModelConfig
from lpf.model.runtime import Runtime, check_tensors, fitted_words
from lpf.reading.fitted_words import FittedWords, with_words, without_words
from lpf.reading.reader import Reader
from lpf.reading.tuned import FOLDER as READER_FOLDER
from lpf.reading.tuned import TunedReader, with_tuned
from lpf.types import Float32Array

# Which entities a model is scored on, the most independent of its training first.
HeldOutData = Literal["test", "validation", "out of fold"]
HELD_OUT: tuple[HeldOutData, ...] = get_args(HeldOutData)
WARNING_PREFIX = "caution: "  # of a note that is a warning
METRIC_PARTS = 4  # of a metric's name in the card, such as level/test/spn/ece
DATA = re.compile(r"(?P<name>.*): (?P<entities>\d+) entities\b", re.DOTALL)
DIGEST = re.compile(r"sha256 ([0-9a-f]{16})\.$")


def score_place(data: str, variant: str) -> str:
    """The entities and the variant in one word, as cards and JSON documents write them."""
    return f"{data}/{variant}"


@dataclass(frozen=True)
class CardScores:
    """Metrics of one predicate in a card: ``data`` is one of ``HELD_OUT``, ``variant``
    spn or learned. A card of another version may lack some metrics."""

    predicate: str
    data: str
    variant: str
    metrics: Mapping[str, float]

    @property
    def place(self) -> str:
        return score_place(self.data, self.variant)

    @property
    def beats_class_shares(self) -> bool | None:
        """Whether the model is better than the class shares beyond chance; None for a card from
        before they were compared."""
        beats = self.metrics.get("beats_class_shares")
        return None if beats is None else bool(beats)

    @property
    def beats_claim(self) -> bool | None:
        """Whether the model is better than the claim alone beyond chance; None if there were no
        claims, and for a card from before they were compared."""
        beats = self.metrics.get("beats_claim")
        return None if beats is None else bool(beats)

    @property
    def verdicts(self) -> tuple[str, ...]:
        """A sentence for each of class shares and claim alone that the model is not better than."""
        found = []
        if self.beats_class_shares is False:
            found.append(class_shares_verdict(self.predicate, self.data, self.metrics))
        if self.beats_claim is False:
            found.append(claim_verdict(self.predicate, self.data, self.metrics))
        return tuple(found)


def class_shares_verdict(predicate: str, data: str, metrics: Mapping[str, float]) -> str:
    """Says that a model is not better than the class shares, with the numbers."""
    said = _not_better(predicate, data, metrics, "the class shares", "class_shares", "nll_gain")
    return f"{said} Label more entities, or add evidence that says more."


def claim_verdict(predicate: str, data: str, metrics: Mapping[str, float]) -> str:
    """Says that a model is not better than the claim alone, with the numbers."""
    said = _not_better(predicate, data, metrics, "the claim alone", "claim", "claim_gain")
    return (
        f"{said} What it knows it may know from the wording of the claims, without any evidence. "
        "Label more entities, or add evidence that says more."
    )


def _not_better(
    predicate: str, data: str, metrics: Mapping[str, float], rival: str, prefix: str, gain: str
) -> str:
    """``prefix`` begins the names of the rival's metrics, ``gain`` those of the difference."""
    entities = f"{metrics['entities']:,.0f} {data.replace('out of fold', 'held-out')} entities"
    low, high = -metrics[f"{gain}_high"], -metrics[f"{gain}_low"]
    short = rival.removeprefix("the ")
    return (
        f"{predicate}: not better than {rival} on {entities}: NLL {metrics['nll']:.2f}, {short} "
        f"{metrics[f'{prefix}_nll']:.2f} (difference {-metrics[gain]:+.2f}, 95 % interval "
        f"{low:+.2f} to {high:+.2f}); {metrics['accuracy']:.0%} right, {short} "
        f"{metrics[f'{prefix}_accuracy']:.0%}."
    )


@dataclass(frozen=True)
class ModelCard:
    """The model card, stored with the weights; the model's version is a hash that includes it.

    It contains no time and no machine name: the same data and seeds give the same card.
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
        """Name of the data set; None if ``data`` is not in the form that training writes."""
        match = DATA.match(self.data)
        return None if match is None else match["name"]

    @property
    def entities(self) -> int | None:
        """Number of entities in the data set, or None as above."""
        match = DATA.match(self.data)
        return None if match is None else int(match["entities"])

    @property
    def data_digest(self) -> str | None:
        """First 16 digits of the data set's SHA-256, or None as above."""
        match = DIGEST.search(self.data)
        return None if match is None else match[1]

    def scores(self) -> tuple[CardScores, ...]:
        """The metrics of whole entities, in the order of the card."""
        grouped: dict[tuple[str, str, str], dict[str, float]] = {}
        for path, number in self.metrics.items():
            parts = path.rsplit("/", METRIC_PARTS - 1)
            if len(parts) == METRIC_PARTS:
                predicate, data, variant, metric = parts
                grouped.setdefault((predicate, data, variant), {})[metric] = number
        return tuple(CardScores(*key, metrics) for key, metrics in grouped.items())

    def held_out(self) -> tuple[CardScores, ...]:
        """LPF-SPN's scores, one per predicate, on test entities; else on validation entities, else
        out of fold. Empty if the card has none."""
        scores = [one for one in self.scores() if one.variant == "spn"]
        for data in HELD_OUT:
            if chosen := tuple(one for one in scores if one.data == data):
                return chosen
        return ()

    def verdicts(self) -> tuple[str, ...]:
        """A sentence for each predicate that is answered no better than by the class shares, and
        one for each that is answered no better than by the claim alone."""
        return tuple(sentence for one in self.held_out() for sentence in one.verdicts)

    def not_better_than_class_shares(self) -> tuple[str, ...]:
        """Of these, the sentences about class shares."""
        return tuple(one.verdicts[0] for one in self.held_out() if one.beats_class_shares is False)

    def not_better_than_claim(self) -> tuple[str, ...]:
        """Of these, the sentences about claims alone."""
        return tuple(one.verdicts[-1] for one in self.held_out() if one.beats_claim is False)

    def to_markdown(self, predicates: Mapping[str, Sequence[str]] | None = None) -> str:
        """The card as Markdown. ``predicates`` are the model's, with their values. Every text is
        on one line, so that none can add a heading."""
        questions = [
            _folded(f"- {name}: {', '.join(values)}") for name, values in (predicates or {}).items()
        ]
        metrics = [_folded(f"- {name}: {value:.6g}") for name, value in self.metrics.items()]
        sections = {
            "Data": [_folded(self.data)],
            "Metrics": metrics or ["None were recorded."],
            "Intended use": [_folded(self.intended_use)],
            "Unsuitable use": [_folded(self.unsuitable_use)],
            "Predicates": questions,
            "Notes": [_folded(f"- {note}") for note in self.notes],
        }
        body = [f"## {title}\n\n" + "\n".join(lines) for title, lines in sections.items() if lines]
        first = [f"**{_folded(sentence)}**" for sentence in self.verdicts()]
        return "\n\n".join([f"# {_folded(self.name)}", *first, *body]) + "\n"


def _folded(text: str) -> str:
    return " ".join(text.splitlines())


FORMAT = "lpf-model/1"
CONFIG_FILE, CARD_FILE, WEIGHTS_FILE = "config.json", "card.json", "weights.safetensors"
FILES = (CONFIG_FILE, CARD_FILE, WEIGHTS_FILE)
VERSION_DIGITS = 16


@dataclass(frozen=True)
class Artefact:
    """A loaded model, with the version that its content hashes to."""

    version: str
    config: ModelConfig
    card: ModelCard
    tensors: Mapping[str, Float32Array]
    tuned: TunedReader | None = None

    def runtime(self) -> Runtime:
        return Runtime(self.config, self.tensors, self.version)

    def reader(self, reader: Reader) -> Reader:
        """The variant of ``reader`` that the model was trained with: of its version, and with the
        words and the tuned stances that are part of the model."""
        pinned = reader.pinned(without_words(self.config.reader_id))
        return with_words(with_tuned(pinned, self.tuned), self.words)

    @property
    def words(self) -> FittedWords | None:
        """The regressions on words that are part of the model, if it has any."""
        return fitted_words(self.config, self.tensors)


def save_model(
    models: Path,
    config: ModelConfig,
    tensors: Mapping[str, Float32Array],
    card: ModelCard,
    tuned: TunedReader | None = None,
) -> str:
    """Write ``models/<version>`` in one step and return the version. A model that is there already
    is not written again. ``tuned`` is the reader that ``config`` names, if it names one."""
    from safetensors.numpy import save

    check_tensors(config, tensors)
    assert config.tuned_reader == (None if tuned is None else tuned.digest)
    contents = {
        CONFIG_FILE: _canonical({"format": FORMAT, **config.to_dict()}),
        CARD_FILE: _canonical(card.to_dict()),
        WEIGHTS_FILE: save(dict(sorted(tensors.items()))),
    }
    version = _version(contents)
    if not (models / version).exists():
        files = {} if tuned is None else tuned.files()
        reader = {f"{READER_FOLDER}/{name}": content for name, content in files.items()}
        _write_folder(models, version, contents | reader)
    return version


def load_model(folder: Path) -> Artefact:
    """Read and check a model. Raises ArtefactError, which names the file or tensor that is
    wrong."""
    contents = {name: _read(folder / name) for name in FILES}
    version = _version(contents)
    if folder.name != version:
        raise ArtefactHashError(
            f"{folder}: the content hashes to {version}, the folder is named {folder.name}. A file "
            "was changed or the folder renamed; copy the model again from its source."
        )
    config = _parse_config(contents[CONFIG_FILE], folder / CONFIG_FILE)
    card = ModelCard.from_dict(_parse_json(contents[CARD_FILE], folder / CARD_FILE))
    tensors = _parse_tensors(contents[WEIGHTS_FILE], folder / WEIGHTS_FILE, config)
    tuned = None
    if config.tuned_reader is not None:
        tuned = TunedReader.load(folder / READER_FOLDER, config.tuned_reader)
    return Artefact(version, config, card, tensors, tuned)


def _canonical(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, sort_keys=True, indent=1, ensure_ascii=True).encode() + b"\n"


def _version(contents: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256(FORMAT.encode())
    for name in FILES:
        digest.update(len(contents[name]).to_bytes(8, "little"))
        digest.update(contents[name])
    return digest.hexdigest()[:VERSION_DIGITS]


def _write_folder(models: Path, version: str, contents: Mapping[str, bytes]) -> None:
    """All files first, then one rename: other processes see a complete model or none."""
    models.mkdir(parents=True, exist_ok=True, mode=0o700)
    staging = Path(tempfile.mkdtemp(prefix=".incoming-", dir=models))
    try:
        for name, content in contents.items():
            (staging / name).parent.mkdir(mode=0o700, exist_ok=True)
            # For the owner only: a model says something about the texts it was trained on.
            handle = os.open(staging / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        staging.rename(models / version)
    except OSError:
        # Another process wrote the same version first; the content is the same.
        if not (models / version).exists():
            raise
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise ArtefactFormatError(
            f"{path} is missing. A model is a folder with {', '.join(FILES)}; other formats, such "
            "as pickle, are not supported."
        ) from None


def _parse_json(content: bytes, path: Path) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ArtefactFormatError(f"{path}: not valid JSON: {error}.") from error
    if not isinstance(document, dict):
        raise ArtefactFormatError(f"{path}: must hold one JSON object.")
    return document


def _parse_config(content: bytes, path: Path) -> ModelConfig:
    document = _parse_json(content, path)
    stored_format = document.pop("format", None)
    if stored_format != FORMAT:
        raise ArtefactFormatError(
            f"{path}: format is {stored_format!r}, this version reads {FORMAT!r}."
        )
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
