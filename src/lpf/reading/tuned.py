"""A stance reader that was tuned to the labels of a model, stored with that model.

    reader/reader.json          what it was tuned from, on what and how; the hashes of the others
    reader/weights.safetensors  the weights, matrices in int8
    reader/tokenizer.json       as the untuned reader has it

The hash of ``reader.json`` names the tuned reader: it is part of the reader's ID and of the model.
Nothing else is needed to read with it, neither torch nor the untuned weights. Its ONNX graph is
built in memory: no copy of weights that were fitted to a user's texts is left in a shared cache.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from lpf.errors import ReaderIntegrityError, ReaderUnavailableError
from lpf.reading.export import STANCE, TOKENIZER_FILE, EncoderSource
from lpf.reading.graph import Array, build_pair_model
from lpf.reading.minilm import open_session, parse_tokenizer
from lpf.reading.pair import PairReader
from lpf.reading.reader import Reader
from lpf.reading.stance import MAX_LENGTH, StanceReader
from lpf.reading.stored_weights import pack_weights, unpack_weights

if TYPE_CHECKING:
    from tokenizers import Tokenizer

FORMAT: Final = "lpf-reader/1"
FOLDER: Final = "reader"  # in the folder of the model
CARD_FILE, WEIGHTS_FILE = "reader.json", "weights.safetensors"
NAME: Final = "lpf-stance-tuned"


@dataclass(frozen=True)
class TunedReader:
    """``stored`` is the folder, or the files by name. Files of a folder are read, and checked, when
    they are needed."""

    card: Mapping[str, Any]
    stored: Path | Mapping[str, bytes]

    @classmethod
    def pack(
        cls, tensors: Mapping[str, Array], untuned: StanceReader, made: Mapping[str, Any]
    ) -> TunedReader:
        """``made`` says on what and how it was tuned; the same tuning gives the same files."""
        weights, tokenizer = pack_weights(tensors), untuned.tokenizer_bytes()
        card = {
            "format": FORMAT,
            "untuned": {"name": untuned.source.name, "sha256": untuned.source.weights_sha256},
            "weights_sha256": hashlib.sha256(weights).hexdigest(),
            "tokenizer_sha256": hashlib.sha256(tokenizer).hexdigest(),
            **made,
        }
        files = {WEIGHTS_FILE: weights, TOKENIZER_FILE: tokenizer}
        return cls(json.loads(json.dumps(card)), files)

    @classmethod
    def load(cls, folder: Path, digest: str) -> TunedReader:
        """ReaderIntegrityError if the card is not the one that hashes to ``digest``."""
        path = folder / CARD_FILE
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ReaderUnavailableError(
                f"cannot read {path}: {error}. The model was tuned together with this reader and "
                "cannot be used without it.",
                hint="Copy the whole folder of the model again from its source.",
            ) from error
        if (actual := hashlib.sha256(content).hexdigest()) != digest:
            raise _changed(path, actual, digest)
        return cls(json.loads(content), folder)

    @cached_property
    def card_bytes(self) -> bytes:
        return json.dumps(self.card, sort_keys=True, indent=1, ensure_ascii=True).encode() + b"\n"

    @cached_property
    def digest(self) -> str:
        """The hash that names this reader."""
        return hashlib.sha256(self.card_bytes).hexdigest()

    def describe(self) -> str:
        """What it was tuned from and on, in one sentence."""
        untuned, count = self.card["untuned"], self.card["tuned_on"]
        return (
            f"from {untuned['name']} {untuned['sha256'][:16]}, on {count['pairs']:,} texts with "
            f"claims of {count['entities']:,} training entities; sha256 {self.digest}"
        )

    @property
    def source(self) -> EncoderSource:
        return replace(STANCE, name=NAME, weights_sha256=self.digest)

    def files(self) -> dict[str, bytes]:
        """The content of all files by name, checked."""
        return {
            CARD_FILE: self.card_bytes,
            WEIGHTS_FILE: self._content(WEIGHTS_FILE, "weights_sha256"),
            TOKENIZER_FILE: self._content(TOKENIZER_FILE, "tokenizer_sha256"),
        }

    def in_memory(self) -> TunedReader:
        """The same reader, which no longer depends on its folder."""
        return TunedReader(self.card, self.files())

    def _content(self, name: str, pinned: str) -> bytes:
        if not isinstance(self.stored, Path):
            return self.stored[name]
        path = self.stored / name
        try:
            content = path.read_bytes()
        except OSError as error:
            raise ReaderUnavailableError(
                f"cannot read {path}: {error}. Nothing was read.",
                hint="Copy the whole folder of the model again from its source.",
            ) from error
        if (actual := hashlib.sha256(content).hexdigest()) != self.card[pinned]:
            raise _changed(path, actual, self.card[pinned])
        return content


class TunedStanceReader(StanceReader):
    """Reads as ``StanceReader`` does, with tuned weights. ``untuned`` is the reader that other
    models pin, if it is installed."""

    def __init__(
        self, tuned: TunedReader, untuned: Reader | None = None, *, threads: int | None = None
    ) -> None:
        super().__init__(source=tuned.source, max_length=MAX_LENGTH, threads=threads)
        self._tuned, self._untuned = tuned, untuned

    def pinned(self, reader_id: str) -> Reader:
        if reader_id == self.reader_id or self._untuned is None:
            return self
        return self._untuned.pinned(reader_id)

    def newest(self) -> Reader:
        return self if self._untuned is None else self._untuned.newest()

    def _load(self) -> tuple[Any, Tokenizer]:
        files = self._tuned.files()
        model = build_pair_model(unpack_weights(files[WEIGHTS_FILE]), "float32")
        return open_session(model, self.reader_id), parse_tokenizer(files[TOKENIZER_FILE])


def with_tuned(reader: Reader, tuned: TunedReader | None) -> Reader:
    """``reader``, whose stances are read by ``tuned``; the reader itself if that is None."""
    if tuned is None or not isinstance(reader, PairReader):
        return reader
    untuned = None if reader.stance is None else reader.stance.newest()
    threads = untuned.threads if isinstance(untuned, StanceReader) else None
    stance = TunedStanceReader(tuned, untuned, threads=threads)
    is_same = reader.stance is not None and reader.stance.reader_id == stance.reader_id
    return reader if is_same else reader.with_stance(stance)


def _changed(path: Path, actual: str, expected: str) -> ReaderIntegrityError:
    return ReaderIntegrityError(
        f"{path} was changed: its sha-256 is {actual}, not {expected}. Nothing was read.",
        hint="Copy the whole folder of the model again from its source.",
    )
