"""Pretrained transformers from a folder or the hub, and entities as rows of their tokens.

A row is "[CLS] claim [SEP] text [SEP] text [SEP]". Texts are sorted, so that their order makes no
difference.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from lpf.datasets import DatasetEntity
from lpf.errors import ConfigError, MissingPackageError, ReaderUnavailableError
from lpf.reading.export import MINILM, installed_weights

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class WordPieces(Protocol):
    """The part of a tokenizer that is used here."""

    def pieces(self, text: str, limit: int) -> list[int]:
        """The first tokens of a text, at most ``limit``, without special tokens."""
        ...


@dataclass(frozen=True)
class TokenBudget:
    """``opening`` and ``separator`` are the token IDs of [CLS] and [SEP]; ``limit`` counts both."""

    opening: int
    separator: int
    limit: int

    def row(self, entity: DatasetEntity, words: WordPieces) -> list[int]:
        """The claim first, if there is one. If there is no room for a token of each text, the last
        texts are left out."""
        texts = [] if entity.claim is None else [entity.claim]
        texts += sorted(item.text for item in entity.evidence)
        parts = [words.pieces(text, self.limit) for text in texts[: (self.limit - 1) // 2]]
        room = self.limit - 1 - len(parts)
        row = [self.opening]
        lengths = fair_shares([len(part) for part in parts], room)
        for part, length in zip(parts, lengths, strict=True):
            row += [*part[:length], self.separator]
        return row


def fair_shares(lengths: Sequence[int], room: int) -> list[int]:
    """Lengths after cutting, at most ``room`` in all: short texts are not cut, long ones are cut to
    the same length, give or take one."""
    shares = [0] * len(lengths)
    shortest_first = sorted(range(len(lengths)), key=lengths.__getitem__)
    for done, place in enumerate(shortest_first):
        shares[place] = min(lengths[place], room // (len(lengths) - done))
        room -= shares[place]
    return shares


@dataclass(frozen=True)
class PretrainedTransformer:
    """A tokenizer and the transformer it belongs to, without any head."""

    name: str
    tokenizer: PreTrainedTokenizerBase
    body: torch.nn.Module
    width: int
    positions: int

    def pieces(self, text: str, limit: int) -> list[int]:
        found = self.tokenizer(text, add_special_tokens=False, truncation=True, max_length=limit)
        return list(found["input_ids"])

    def budget(self, limit: int) -> TokenBudget:
        """ConfigError if the transformer has no [CLS] and [SEP], or reads fewer tokens."""
        opening, separator = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        if not isinstance(opening, int) or not isinstance(separator, int):
            raise ConfigError(
                f"the tokenizer of {self.name} has no [CLS] and [SEP]. Nothing was trained.",
                field="checkpoint",
                hint="Give a transformer that has them, such as bert-base-uncased.",
            )
        if limit > self.positions:
            raise ConfigError(
                f"{limit} is more than the {self.positions} that {self.name} reads. Nothing was "
                "trained.",
                field="max_tokens",
                hint="Set it lower.",
            )
        return TokenBudget(opening, separator, limit)


def load_checkpoint(given: str | Path | None) -> PretrainedTransformer:
    """``given`` is a folder, a name on the hub, or None for the transformer behind the default
    reader. Only a name uses the network, unless HF_HUB_OFFLINE is set."""
    folder = _default_folder() if given is None else Path(given)
    local = given is None or isinstance(given, Path) or folder.is_dir()
    name = str(folder if local else given)
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingPackageError(
            "a fine-tuned transformer needs the package transformers.",
            hint="Install it: `pip install 'lpf[baselines]'`.",
        ) from error
    try:
        with _silence():
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
            body = AutoModel.from_pretrained(name, local_files_only=local).float()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{name} cannot be loaded ({error}). Nothing was trained.",
            field="checkpoint",
            hint="Give a folder with a transformer and its tokenizer, or a name on the hub.",
        ) from error
    settings = body.config
    positions = getattr(settings, "max_position_embeddings", tokenizer.model_max_length)
    return PretrainedTransformer(name, tokenizer, body, int(settings.hidden_size), int(positions))


def checkpoint_settings(model: str) -> tuple[tuple[str, str], ...]:
    """What identifies a transformer in the settings of a cell: for a folder its path and the hash
    of its files, for a name on the hub the name."""
    folder = Path(model)
    if not folder.is_dir():
        return (("checkpoint", model),)
    return (("checkpoint", str(folder.resolve())), ("digest", _digest(folder)))


def checkpoint_of(settings: Mapping[str, object]) -> str | None:
    """The transformer that ``checkpoint_settings`` describe; None for other settings."""
    if "checkpoint" not in settings or not settings.keys() <= {"checkpoint", "digest"}:
        return None
    return str(settings["checkpoint"])


def _digest(folder: Path) -> str:
    """Hash of the names and contents of the files in a folder."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            digest.update(f"{path.name}\0{content}\n".encode())
    return digest.hexdigest()[:16]


def _default_folder() -> Path:
    folder = installed_weights()
    if folder is None:
        raise ReaderUnavailableError(
            f"the weights of {MINILM.name} are missing.", hint=MINILM.install_hint
        )
    return folder


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No progress bars, and no report on unused weights."""
    from transformers.utils import logging

    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]
