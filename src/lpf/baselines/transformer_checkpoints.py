"""Pretrained transformers from a folder or the hub, loaded without a word on the screen.

An entity's texts as one row of tokens: "[CLS] claim [SEP] text [SEP] text [SEP]".

Texts stand in alphabetical order, so that the order they came in makes no difference.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import torch

from lpf.datasets import DatasetEntity
from lpf.errors import ConfigError, MissingPackageError, ReaderUnavailableError
from lpf.reading.export import INSTALL_HINT, MODEL_NAME, installed_weights

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


class WordPieces(Protocol):
    """What is needed of a tokenizer."""

    def pieces(self, text: str, limit: int) -> list[int]:
        """The first tokens of a text, at most ``limit``, without special ones."""
        ...


@dataclass(frozen=True)
class TokenBudget:
    """``opening`` and ``separator`` are the numbers of [CLS] and [SEP]; ``limit`` counts them."""

    opening: int
    separator: int
    limit: int

    def row(self, entity: DatasetEntity, words: WordPieces) -> list[int]:
        """Claim first, where there is one. Where there are more texts than places for a token of
        each, the last ones are left out."""
        texts = [] if entity.claim is None else [entity.claim]
        texts += sorted(item.text for item in entity.evidence)
        parts = [words.pieces(text, self.limit) for text in texts[: (self.limit - 1) // 2]]
        room = self.limit - 1 - len(parts)
        row = [self.opening]
        for part, kept in zip(parts, fair_shares([len(part) for part in parts], room), strict=True):
            row += [*part[:kept], self.separator]
        return row


def fair_shares(lengths: Sequence[int], room: int) -> list[int]:
    """Of each length what may stay, ``room`` at most together: short ones stay whole, and long
    ones are cut to the same length, give or take one."""
    kept = [0] * len(lengths)
    shortest_first = sorted(range(len(lengths)), key=lengths.__getitem__)
    for done, place in enumerate(shortest_first):
        kept[place] = min(lengths[place], room // (len(lengths) - done))
        room -= kept[place]
    return kept


NEEDED = "pip install 'lpf[baselines]'"


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
        """ConfigError where the transformer has no [CLS] and [SEP], or reads less than that."""
        opening, separator = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        if not isinstance(opening, int) or not isinstance(separator, int):
            raise ConfigError(
                f"checkpoint {self.name}: its tokenizer has no [CLS] and [SEP]. Nothing was "
                "trained; give a transformer that has, such as bert-base-uncased."
            )
        if limit > self.positions:
            raise ConfigError(
                f"max_tokens: {limit} is more than the {self.positions} that {self.name} reads. "
                "Nothing was trained; set it lower."
            )
        return TokenBudget(opening, separator, limit)


def load_checkpoint(given: str | Path | None) -> PretrainedTransformer:
    """``given`` is a folder, a name on the hub, or None for the transformer behind the default
    reader. Only a name may reach the network, and not where HF_HUB_OFFLINE is set."""
    folder = _default_folder() if given is None else Path(given)
    local = given is None or isinstance(given, Path) or folder.is_dir()
    name = str(folder if local else given)
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError as error:
        raise MissingPackageError(
            f"a fine-tuned transformer needs the package transformers: `{NEEDED}`."
        ) from error
    try:
        with _silence():
            tokenizer = AutoTokenizer.from_pretrained(name, local_files_only=local)
            body = AutoModel.from_pretrained(name, local_files_only=local).float()
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"checkpoint {name}: cannot be loaded ({error}). Nothing was trained; give a folder "
            "with a transformer and its tokenizer, or the name of one on the hub."
        ) from error
    settings = body.config
    positions = getattr(settings, "max_position_embeddings", tokenizer.model_max_length)
    return PretrainedTransformer(name, tokenizer, body, int(settings.hidden_size), int(positions))


def _default_folder() -> Path:
    folder = installed_weights()
    if folder is None:
        raise ReaderUnavailableError(f"the weights of {MODEL_NAME} are missing. {INSTALL_HINT}.")
    return folder


@contextlib.contextmanager
def _silence() -> Iterator[None]:
    """No progress bars, and no report on weights of heads that are not used."""
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
