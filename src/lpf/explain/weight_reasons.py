"""Why an item counts as much as it does, in words: the same words on the terminal, on pages and in
sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from lpf.explain.explanation import ItemPart
from lpf.results import NO_WORDS, UNLIKE

FULL: Final = 0.995  # what is shown as 1.00 explains nothing
LITTLE: Final = 0.5  # an item that counts less than this share of what it could is worth a sentence
MOST_COPIES_NAMED: Final = 3


@dataclass(frozen=True)
class WeightReason:
    """``words`` follow "because"; ``share`` is what is left of the weight for this reason, or, of
    a doubt, of what the item says. ``is_common`` is True if it holds for all items alike."""

    words: str
    share: float
    is_common: bool = False

    @property
    def is_strong(self) -> bool:
        return self.share <= LITTLE and not self.is_common

    def __str__(self) -> str:
        return f"{self.words} ({self.share:.2f})"


def weight_reasons(item: ItemPart) -> list[WeightReason]:
    """All that makes the item count more or less than one independent item would."""
    return list(_reasons(item))


def reason_for_weight(item: ItemPart) -> str:
    """Why the item counts little, as one phrase; empty if it does not."""
    strong = [one.words for one in weight_reasons(item) if one.is_strong]
    if item.wordless:
        strong = strong[:1]  # nothing else matters then
    return joined(strong)


def listed_reasons(item: ItemPart) -> str:
    """All reasons with their numbers, for a cell or a card; empty if there are none."""
    return "; ".join(map(str, weight_reasons(item)))


def joined(words: Sequence[str], most: int | None = None) -> str:
    """ "one, two and three"; "one, two and 5 more" if only the first ``most`` are named."""
    if most is not None and len(words) > most:
        words = [*words[:most], f"{len(words) - most:,} more"]
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _reasons(item: ItemPart) -> Iterator[WeightReason]:
    weight = item.weight
    if item.wordless:
        left = 0.0 if weight.familiarity is None else weight.familiarity
        yield _reason(f"it has {NO_WORDS}", left)
    if weight.given is not None and abs(weight.given - 1.0) > 1.0 - FULL:
        amount = "little" if weight.given <= LITTLE else "less" if weight.given < 1.0 else "more"
        yield _reason(f"it was given {amount} weight", weight.given)
    if _takes(weight.copies) and item.copies_of:
        named = joined(item.copies_of, MOST_COPIES_NAMED)
        yield _reason(f"it repeats {named}", weight.copies)
    if _takes(weight.familiarity) and not item.wordless:
        degree = "" if _is_little(weight.familiarity) else "somewhat "
        yield _reason(f"it is {degree}{UNLIKE}", weight.familiarity)
    if _takes(weight.relevance):
        degree = "says little" if _is_little(weight.relevance) else "may say nothing"
        yield _reason(f"it {degree} about the claim", weight.relevance)
    if _takes(weight.shared):
        yield _reason("it may share its errors with other items", weight.shared, is_common=True)
    if _takes(weight.trust):
        degree = "hardly" if _is_little(weight.trust) else "not fully"
        words = f"what was learned holds {degree} in other groups"
        yield _reason(words, weight.trust, is_common=True)
    # A credibility is shown wherever reasons are; only a low one is worth repeating.
    least = 1.0 - FULL if item.credibility is None else LITTLE
    if weight.doubt is not None and weight.doubt > least:
        yield _reason(_doubtful(item, weight.doubt), 1.0 - weight.doubt)


def _doubtful(item: ItemPart, doubt: float) -> str:
    if item.credibility is not None:
        return "its credibility is low"
    return f"such items {'often' if doubt >= LITTLE else 'sometimes'} say nothing"


def _takes(share: float | None) -> bool:
    return share is not None and share < FULL


def _is_little(share: float | None) -> bool:
    return share is not None and share <= LITTLE


def _reason(words: str, share: float | None, *, is_common: bool = False) -> WeightReason:
    assert share is not None  # a factor that the answer does not have takes nothing
    return WeightReason(words, share, is_common)
