"""The answers of a language model, with those that failed marked as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lpf import metrics
from lpf.baselines.language_models.asking import Replies
from lpf.baselines.language_models.config import Prices
from lpf.baselines.language_models.costs import Costs
from lpf.baselines.language_models.parsing import Stated, Unreadable, distribution, parse_answer
from lpf.baselines.language_models.replies import Reply
from lpf.types import FloatArray


@dataclass(frozen=True)
class LanguageModelAnswers:
    """``probabilities`` [E, V], ``failed`` [E], and of each entity what the model stated, or what
    went wrong.

    A row that failed is uniform: its log loss is log V, that of knowing nothing. A uniform row
    still has a first value, which is right by luck now and then, and no row could avoid that
    without knowing the label. So whether answers are right is asked here (``right``, ``judged``,
    ``accuracy``), where a failed one is wrong, and not of the rows alone.
    """

    probabilities: FloatArray
    failed: NDArray[np.bool_]
    stated: tuple[Stated | None, ...]
    problems: tuple[str | None, ...]
    costs: Costs

    def right(self, labels: metrics.LabelArray) -> NDArray[np.bool_]:
        """[E], for the positions [E] of the right values."""
        return self.judged(labels)[1]

    def judged(self, labels: metrics.LabelArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """As ``metrics.judged``, confidence and right, [E] each; a failed answer is wrong."""
        confidence, right = metrics.judged(self.probabilities, labels)
        return confidence, right & ~self.failed

    def accuracy(self, labels: metrics.LabelArray) -> float:
        """Over all entities, failed ones among them: the paper left those out of its figures."""
        return float(self.right(labels).mean())


def make_answers(
    prompts: Sequence[str], replies: Replies, values: Sequence[str], prices: Prices | None
) -> LanguageModelAnswers:
    by_prompt = replies.by_prompt
    read = {prompt: _read(reply, values) for prompt, reply in by_prompt.items()}
    answered = [read[prompt] for prompt in prompts]
    stated = tuple(one if isinstance(one, Stated) else None for one in answered)
    unread = sum(
        isinstance(read[prompt], Unreadable) and reply.text is not None
        for prompt, reply in by_prompt.items()
    )
    return LanguageModelAnswers(
        probabilities=np.array([distribution(one, values) for one in stated]),
        failed=np.array([one is None for one in stated]),
        stated=stated,
        problems=tuple(one.problem if isinstance(one, Unreadable) else None for one in answered),
        costs=Costs.of(list(by_prompt.values()), replies.kept, unread, prices),
    )


def _read(reply: Reply, values: Sequence[str]) -> Stated | Unreadable:
    if reply.text is None:
        return Unreadable(f"the call failed: {reply.problem}")
    found = parse_answer(reply.text, values)
    if isinstance(found, Unreadable) and reply.cut_off:
        return Unreadable(f"{found.problem}; it was cut off at max_tokens")
    return found
