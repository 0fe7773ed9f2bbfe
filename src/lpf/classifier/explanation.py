"""Why an entity got its answer, item by item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lpf.classifier.answering import Fitted, Question
from lpf.combine.combined import Combined
from lpf.types import FloatArray, QueryOptions

_LONGEST_TEXT = 72


@dataclass(frozen=True)
class Explanation:
    """The answer about one entity with N items, and what each had to do with it.

    ``base`` [V] and ``contributions`` [N, V] add up to the logarithm of ``probabilities`` [V], but
    for a constant. ``weight`` [N] is the exponent an item entered with. The variant ``learned``
    weighs items and has no contributions: both arrays are None there. Items of one number in
    ``groups`` [N] are copies of each other, -1 stands alone.
    """

    classes: NDArray[Any]
    probabilities: FloatArray
    prior: FloatArray
    texts: tuple[str, ...]
    weight: FloatArray
    groups: NDArray[np.int64]
    base: FloatArray | None
    contributions: FloatArray | None

    def __str__(self) -> str:
        first, second = np.argsort(-self.probabilities, kind="stable")[:2]
        answer = f"{self.classes[first]}: {self.probabilities[first]:.3f}"
        lines = [f"{answer} (prior {self.prior[first]:.3f})"]
        strength, what = self.weight, "weight of each item:"
        if self.contributions is not None:
            strength = self.contributions[:, first] - self.contributions[:, second]
            what = f"log odds of {self.classes[first]} against {self.classes[second]}, by item:"
        order = np.argsort(-np.abs(strength), kind="stable").tolist()
        lines += [what] if order else ["no evidence"]
        return "\n".join([*lines, *(self._line(item, strength[item]) for item in order)])

    def _line(self, item: int, strength: float) -> str:
        text = " ".join(self.texts[item].split())
        cut = text if len(text) <= _LONGEST_TEXT else text[: _LONGEST_TEXT - 3] + "..."
        copy = "" if self.groups[item] < 0 else f" [copies {self.groups[item]}]"
        return f"{strength:+8.3f}  {cut}{copy}"


def explain(question: Question, fitted: Fitted, options: QueryOptions) -> Explanation:
    """Of a question about one entity."""
    texts = tuple(item.text_content for item in question.entities[0].evidence)
    if not texts:
        return _prior_alone(fitted)
    found, groups = fitted.answer(question.items, options), question.items.groups
    assert groups is not None  # a question's items always come with them
    made = found.combined
    return Explanation(
        fitted.classes.array,
        found.distribution[0],
        fitted.prior,
        texts,
        made.parts["exponent"] if isinstance(made, Combined) else made.weight,
        groups,
        made.base[0] if isinstance(made, Combined) else None,
        made.contributions if isinstance(made, Combined) else None,
    )


def _prior_alone(fitted: Fitted) -> Explanation:
    prior = fitted.prior
    nobody, nothing = np.empty(0, np.int64), np.empty((0, len(prior)))
    return Explanation(
        fitted.classes.array, prior, prior, (), nothing[:, 0], nobody, np.log(prior), nothing
    )
