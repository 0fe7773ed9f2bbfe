"""The smallest set of items whose removal changes the answer.

Up to twelve items, all sets are tried, the smallest first. Beyond that, items are removed in the
order of what they say for the answer against each other value, the fewest that suffice are found by
bisection, and items whose removal was not needed are put back. If none suffice, only the items that
say most for another value are kept. That set may not be the smallest, and none found is no proof
that there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from lpf.explain.explanation import Flip
from lpf.explain.recombination import Places, Recombination
from lpf.types import FloatArray

MOST_EXACT: Final = 12
FEW: Final = 7
MOST_PUT_BACK: Final = 16  # larger sets are not thinned out
TIE: Final = 1e-9


def smallest_flip(
    items: Recombination,
    answer: FloatArray,
    added: FloatArray,
    ids: Sequence[str],
    values: Sequence[str],
) -> Flip | None:
    """``answer`` [V] is the distribution from all items, ``added`` [K, V] what each adds to the
    logarithm of a value. None if no removal changes the most probable value."""
    top = int(answer.argmax())
    if len(ids) == 0 or len(values) < 2:
        return None
    exact = len(ids) <= MOST_EXACT
    removed = _by_trial(items, top, len(ids)) if exact else _by_order(items, top, added)
    if removed is None:
        return None
    left = np.delete(np.arange(len(ids)), removed)
    value = values[int(items.answers([left])[0].argmax())]
    smallest = exact or len(removed) == 1
    return Flip(tuple(ids[place] for place in removed), value, smallest)


def _by_trial(items: Recombination, top: int, count: int) -> Places | None:
    """Of the smallest sets, the one after which the answer is the least probable."""
    everyone = frozenset(range(count))
    sizes = range(1, count + 1)
    # One call for all sizes costs less than several, unless there are many sets.
    for some in [sizes] if count <= FEW else [[size] for size in sizes]:
        sets = [chosen for size in some for chosen in combinations(range(count), size)]
        left = [np.array(sorted(everyone.difference(chosen)), dtype=np.intp) for chosen in sets]
        answers = items.answers(left)
        changed = np.flatnonzero(_is_other(answers, top))
        if len(changed):
            sizes_found = np.array([len(sets[place]) for place in changed])
            best = changed[sizes_found == sizes_found.min()]
            return np.array(sets[int(best[answers[best, top].argmin()])])
    return None


def _by_order(items: Recombination, top: int, added: FloatArray) -> Places | None:
    best: Places | None = None
    for rival in range(added.shape[1]):
        if rival == top:
            continue
        with np.errstate(invalid="ignore"):
            support = np.nan_to_num(added[:, top] - added[:, rival])
        order = np.argsort(-support, kind="stable")
        most = int((support > 0.0).sum())  # removing the others helps the answer
        found = _fewest(items, top, order, most if best is None else min(most, len(best) - 1))
        best = best if found is None else found
    if best is None:
        best = _all_but_strongest(items, top, added)
    return None if best is None else _thinned(items, top, best, len(added))


def _all_but_strongest(items: Recombination, top: int, added: FloatArray) -> Places | None:
    """All items but the one, two, four ... that say most for another value; items that share their
    errors can say more alone than together."""
    count = len(added)
    for rival in range(added.shape[1]):
        if rival == top:
            continue
        with np.errstate(invalid="ignore"):
            support = np.nan_to_num(added[:, rival] - added[:, top])
        order = np.argsort(support, kind="stable")
        for left in (2**power for power in reversed(range(int(np.log2(count)) + 1))):
            if left < count and _changes(items, top, order[: count - left], count):
                return order[: count - left]
    return None


def _fewest(items: Recombination, top: int, order: Places, most: int) -> Places | None:
    """The shortest beginning of ``order`` whose removal changes the answer, at most ``most`` long.
    By bisection, as if longer beginnings changed it too."""
    if most < 1 or not _changes(items, top, order[:most], len(order)):
        return None
    low, high = 0, most
    while high - low > 1:
        middle = (low + high) // 2
        if _changes(items, top, order[:middle], len(order)):
            high = middle
        else:
            low = middle
    return order[:high]


def _thinned(items: Recombination, top: int, removed: Places, count: int) -> Places:
    """Without the items whose removal was not needed, the weakest first."""
    if len(removed) > MOST_PUT_BACK:
        return np.sort(removed)
    kept = removed
    for place in removed[::-1]:
        fewer = kept[kept != place]
        if len(fewer) and _changes(items, top, fewer, count):
            kept = fewer
    return np.sort(kept)


def _changes(items: Recombination, top: int, removed: Places, count: int) -> bool:
    left = np.delete(np.arange(count), removed)
    return bool(_is_other(items.answers([left]), top)[0])


def _is_other(answers: FloatArray, top: int) -> NDArray[np.bool_]:
    """True for answers [S, V] in which another value is more probable than ``top``. A tie, such as
    that of an even prior when no item is left, is no other answer."""
    return np.asarray(answers.max(axis=1) > answers[:, top] + TIE)
