"""A fitted classifier on disk: one JSON file, and a folder with the model.

    classifier.json   classes, prior, hyper-parameters, and the version of the model
    <version>/        the model's own folder (see ``model.artefact``)

Loading runs no code: no pickle is written or read.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from lpf.classifier.answering import FittedModel
from lpf.classifier.entities import PREDICATE
from lpf.classifier.labels import Classes
from lpf.errors import ArtefactFormatError, ConfigError
from lpf.model.artefact import VERSION_DIGITS, load_model, save_model
from lpf.model.config import AggregatorConfig
from lpf.schema import Predicate, Schema
from lpf.storage.atomic_files import write_atomically

FORMAT = "lpf-classifier/1"
FILE = "classifier.json"
_VERSION = re.compile(rf"[0-9a-f]{{{VERSION_DIGITS}}}")


def save(folder: Path, fitted: FittedModel, parameters: Mapping[str, Any]) -> None:
    """Write a classifier. ConfigError for labels that JSON cannot hold; nothing is written then."""
    document = {
        "format": FORMAT,
        "classes": [_label_for_json(label) for label in fitted.classes.labels],
        "prior": fitted.prior.tolist(),
        "with_claim": fitted.with_claim,
        "parameters": _parameters_for_json(parameters, fitted),
        "cautions": list(fitted.warnings),
    }
    plain = json.loads(json.dumps(document, default=_plain))
    model = fitted.artefact
    # The model first, so that the file never names a folder that is not there yet.
    plain["model"] = save_model(folder, model.config, model.tensors, model.card, model.tuned)
    write_atomically(folder / FILE, json.dumps(plain, indent=1).encode() + b"\n")


def load(folder: Path) -> tuple[FittedModel, dict[str, Any]]:
    """The fitted model and the parameters. ArtefactError names the file that is wrong."""
    path = folder / FILE
    document = _document(path)
    try:
        version = document["model"]
        if not _VERSION.fullmatch(version):
            raise ArtefactFormatError(f"{path}: {version!r} is not a model version.")
        artefact = load_model(folder / version)
        classes = Classes(tuple(document["classes"]))
        predicate = Predicate(PREDICATE, classes.values, tuple(document["prior"]))
        _check_values(path, predicate, artefact.config.head(PREDICATE).values)
        # The version is part of the random stream, so it stays as it was before saving.
        tuned = None if artefact.tuned is None else artefact.tuned.in_memory()
        model = replace(artefact, version="unsaved", tuned=tuned)
        with_claim, warnings = bool(document["with_claim"]), tuple(document["cautions"])
        fitted = FittedModel(classes, Schema((predicate,)), model, with_claim, warnings)
        return fitted, _parameters_from_json(document["parameters"])
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtefactFormatError(
            f"{path}: not a complete classifier: {error!r}. Nothing was loaded."
        ) from error


def _document(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ArtefactFormatError(
            f"{path} is missing. Nothing was loaded; give the folder that save() wrote."
        ) from None
    except (ValueError, RecursionError) as error:
        raise ArtefactFormatError(f"{path}: not valid JSON: {error}.") from error
    written = document.get("format") if isinstance(document, dict) else None
    if written != FORMAT:
        raise ArtefactFormatError(f"{path}: format is {written!r}, this version reads {FORMAT!r}.")
    return dict(document)


def _check_values(path: Path, predicate: Predicate, values: tuple[str, ...]) -> None:
    if predicate.values != values:
        raise ArtefactFormatError(
            f"{path}: the classes are {list(predicate.values)}, the model's {list(values)}. "
            "Nothing was loaded; save the classifier again where it was fitted."
        )


def _label_for_json(label: object) -> str | int | float:
    if not isinstance(label, str | int | float):
        raise ConfigError(
            f"{label!r} is of the type {type(label).__name__}; only texts, numbers and booleans "
            "can be saved. Nothing was written; fit with such labels.",
            field="classes",
        )
    return label


def _parameters_for_json(parameters: Mapping[str, Any], fitted: FittedModel) -> dict[str, Any]:
    """``prior`` by position. A reader only by name: a reader object must be given to ``load``."""
    plain = dict(parameters)
    if plain["prior"] is not None:
        plain["prior"] = fitted.prior.tolist()
    if not isinstance(plain["reader"], str):
        plain["reader"] = None
    if plain["aggregator"] is not None:
        plain["aggregator"] = asdict(plain["aggregator"])
    return plain


def _parameters_from_json(parameters: Mapping[str, Any]) -> dict[str, Any]:
    restored: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in parameters.items()
    }
    if "reading" in restored:  # what earlier versions called ``model``
        reading = restored.pop("reading")
        restored["model"] = "best" if reading == "chosen" else reading
    if restored.get("aggregator") is not None:
        restored["aggregator"] = AggregatorConfig(**restored["aggregator"])
    return restored


def _plain(value: object) -> object:
    """NumPy scalars, as a parameter search sets them, as Python values."""
    if isinstance(value, np.generic):
        return value.item()
    raise ConfigError(
        f"{value!r} cannot be written as JSON. Nothing was saved.", field="parameters"
    )
