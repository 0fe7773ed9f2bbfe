"""An entity's texts as one row of tokens: "[CLS] claim [SEP] text [SEP] text [SEP]".

Texts stand in alphabetical order, so that the order they came in makes no difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lpf.datasets import DatasetEntity


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
