"""Drift that shows without outcomes: in texts, in answers, and in what single sources say.

Each answer counts once per entity: the newest. Shares are compared with what training promised, by
exact tests. A finding needs a small p-value, corrected for the number of tests, and a difference
that matters: with many answers, every small one is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from lpf.metrics.exact_tests import (
    chance_of_as_few,
    chance_of_as_many,
    chance_of_other_mix,
    total_variation,
)
from lpf.metrics.intervals import holm
from lpf.model.familiarity import HALF_SHARE
from lpf.model.held_out import HeldOutAnswers
from lpf.monitor.sealed import SealedAnswer
from lpf.monitor.windows import Window, WindowSize, cut_into
from lpf.results import UNFAMILIAR_BELOW
from lpf.types import FloatArray

PROMISED_UNLIKE: Final = 1.0 - HALF_SHARE  # share of ordinary texts that count less than half
FINDING = 0.01  # p-values up to this one are findings
TWICE = 2.0  # times the promised share of unlike texts: less does not matter
OTHER_MIX = 0.1  # this share of answers with another value matters
LESS_AGREEMENT = 0.1  # this much less agreement than of other sources matters
FEWEST_ITEMS = 20  # of a source that is tested
MOST_SOURCES = 200  # those with the most items


@dataclass(frozen=True)
class ShareInWindow:
    """The share of items unlike the training texts in the answers of one window."""

    window: Window
    items: int
    unlike: int


@dataclass(frozen=True)
class TextDrift:
    """Of ``items``, ``unlike`` were unlike the training texts; ``promised`` is the share expected
    of ordinary texts. ``p_value`` is that of the number of entities with such an item."""

    items: int
    unlike: int
    promised: float
    p_value: float
    windows: tuple[ShareInWindow, ...]

    @property
    def share(self) -> float:
        return self.unlike / self.items

    @property
    def is_found(self) -> bool:
        return self.p_value <= FINDING and self.share >= TWICE * self.promised


@dataclass(frozen=True)
class AnswerDrift:
    """How often each value was the answer, ``now`` and about ``held_out`` entities. ``distance`` is
    the share of answers that would have to change for the same mix."""

    now: Mapping[str, int]
    held_out: Mapping[str, int]
    distance: float
    p_value: float

    @property
    def is_found(self) -> bool:
        return self.p_value <= FINDING and self.distance >= OTHER_MIX


@dataclass(frozen=True)
class SourceDrift:
    """The items of one source (None: without one): how many are unlike the training texts, how many
    say the same as the answer, and how many bits they say on average for it against its strongest
    rival, before they are weighted. p-values are corrected for the number of sources (Holm); they
    are None for a source of few items."""

    source: str | None
    items: int
    unlike: int
    agreeing: int
    bits: float
    unlike_p_value: float | None = None
    agreeing_p_value: float | None = None
    findings: tuple[str, ...] = ()


@dataclass
class _SourceCounts:
    items: int = 0
    unlike: int = 0
    agreeing: int = 0
    bits: float = 0.0


@dataclass
class SourceTotals:
    """Sums over the items of each source."""

    by_source: dict[str | None, _SourceCounts] = field(default_factory=dict)

    def add(self, answers: Iterable[SealedAnswer], sources: Mapping[str, str | None]) -> None:
        """``sources`` by evidence ID; erased items are left out."""
        for answer in answers:
            if answer.says is None or answer.familiarity is None:
                continue
            agrees = answer.says.argmax(axis=1) == answer.top
            unlike = answer.familiarity < UNFAMILIAR_BELOW
            bits = _bits_for(answer.says, answer.top)
            for place, name in enumerate(answer.items):
                if name not in sources:
                    continue
                counts = self.by_source.setdefault(sources[name], _SourceCounts())
                counts.items += 1
                counts.unlike += int(unlike[place])
                counts.agreeing += int(agrees[place])
                counts.bits += float(bits[place])


def text_drift(answers: Sequence[SealedAnswer], size: WindowSize | None) -> TextDrift | None:
    """``answers`` in the order of recording; None without items."""
    with_items = [one for one in answers if one.familiarity is not None and len(one.items)]
    if not with_items:
        return None
    items = np.array([len(one.items) for one in with_items])
    unlike = np.array([int((_familiarity(one) < UNFAMILIAR_BELOW).sum()) for one in with_items])
    moments = np.array([one.recorded_at for one in with_items], np.int64)
    # An entity's items resemble each other, so entities are counted, not items.
    chances = 1.0 - (1.0 - PROMISED_UNLIKE) ** items
    windows = tuple(
        ShareInWindow(window, int(items[rows].sum()), int(unlike[rows].sum()))
        for window, rows in cut_into(np.maximum.accumulate(moments), size)
    )
    p_value = chance_of_as_many(int((unlike > 0).sum()), chances)
    return TextDrift(int(items.sum()), int(unlike.sum()), PROMISED_UNLIKE, p_value, windows)


def answer_drift(
    answers: Sequence[SealedAnswer], values: Sequence[str], held: HeldOutAnswers
) -> AnswerDrift | None:
    """The mix of answers against that about held-out entities; None without answers."""
    if not len(answers) or not len(held):
        return None
    now = np.bincount([one.top for one in answers], minlength=len(values))
    before = np.bincount(held.top, minlength=len(values))
    return AnswerDrift(
        dict(zip(values, now.tolist(), strict=True)),
        dict(zip(values, before.tolist(), strict=True)),
        total_variation(now, before),
        chance_of_other_mix(now, before),
    )


def source_drift(totals: SourceTotals) -> tuple[SourceDrift, ...]:
    """Those with the most items first. A source that is unlike the training texts more often than
    promised, or that agrees with the answers less often than all sources do, is a finding."""
    ordered = sorted(totals.by_source.items(), key=lambda one: (-one[1].items, one[0] or ""))
    kept = ordered[:MOST_SOURCES]
    tested = [place for place, (_, counts) in enumerate(kept) if counts.items >= FEWEST_ITEMS]
    everything = sum(counts.items for _, counts in ordered)
    agreeing = sum(counts.agreeing for _, counts in ordered)
    found = [
        SourceDrift(name, one.items, one.unlike, one.agreeing, one.bits / one.items)
        for name, one in kept
    ]
    if not tested:
        return tuple(found)
    raw = [
        chance
        for place in tested
        for chance in (
            chance_of_as_many(found[place].unlike, np.full(found[place].items, PROMISED_UNLIKE)),
            chance_of_as_few(found[place].agreeing, found[place].items, agreeing, everything),
        )
    ]
    corrected = holm(np.array(raw)).reshape(-1, 2).tolist()
    for place, (unlike, fewer) in zip(tested, corrected, strict=True):
        found[place] = _judged(found[place], unlike, fewer, agreeing, everything)
    return tuple(found)


def _judged(
    one: SourceDrift, unlike: float, fewer: float, agreeing: int, everything: int
) -> SourceDrift:
    findings = []
    if unlike <= FINDING and one.unlike >= TWICE * PROMISED_UNLIKE * one.items:
        findings.append("unlike the training texts")
    others = everything - one.items
    rest = (agreeing - one.agreeing) / others if others else 0.0
    if fewer <= FINDING and one.agreeing / one.items <= rest - LESS_AGREEMENT:
        findings.append("agrees less with the answers than other sources")
    return SourceDrift(
        *(one.source, one.items, one.unlike, one.agreeing, one.bits),
        *(unlike, fewer, tuple(findings)),
    )


def _familiarity(answer: SealedAnswer) -> FloatArray:
    assert answer.familiarity is not None  # only answers with items are asked
    return answer.familiarity


def _bits_for(says: FloatArray, top: int) -> FloatArray:
    """[K], from factors [K, V]: log2 of the top value's against that of its strongest rival."""
    if says.shape[1] < 2:
        return np.zeros(len(says))
    rivals = np.delete(says, top, axis=1).max(axis=1)
    least = np.finfo(np.float64).tiny
    return np.asarray(np.log2(np.maximum(says[:, top], least) / np.maximum(rivals, least)))
