"""What if: the answer with items left out, added or weighted otherwise, and with facts assumed.

Nothing is stored or recorded. What is supposed about items is applied to those of the answer, so
with ``top_k`` no other item moves up for one that is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lpf.engine import Background, Engine
from lpf.errors import ConfigError
from lpf.explain.explanation import AnswerExplanation
from lpf.explain.of_answers import Answered, answered_of, explained, recombination_of, with_engine
from lpf.explain.recombination import Places, RobustItems
from lpf.factors.keys import stored_keys
from lpf.index.copies import copy_labels
from lpf.items import GroupArray, Items, Segments
from lpf.results import QueryResult
from lpf.types import Factors, Float32Array, FloatArray, KeyArray, QueryOptions

LARGEST_WEIGHT = 100.0


@dataclass(frozen=True)
class NewText:
    """A text that is not in the store. ``features`` [width] are those of the model's reader."""

    evidence_id: str
    features: Float32Array
    key: bytes
    credibility: float | None = None
    is_wordless: bool = False


@dataclass(frozen=True)
class Changes:
    """What to suppose: items left out, weights of items (1 is what they have), their credibility
    (None: unknown), values of other predicates taken as certain facts, and texts added."""

    drop: tuple[str, ...] = ()
    weights: Mapping[str, float] = field(default_factory=dict)
    credibility: Mapping[str, float | None] = field(default_factory=dict)
    facts: Mapping[str, str] = field(default_factory=dict)
    add: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, weight in self.weights.items():
            if not 0.0 <= weight <= LARGEST_WEIGHT:
                raise ConfigError(
                    f"the weight of {name!r} must be 0 to {LARGEST_WEIGHT:g} times what it is, got "
                    f"{weight!r}. Nothing was computed.",
                    field="weights",
                )
        for name, credibility in self.credibility.items():
            if credibility is not None and not 0.0 <= credibility <= 1.0:
                raise ConfigError(
                    f"the credibility of {name!r} must lie in [0, 1], got {credibility!r}. Nothing "
                    "was computed.",
                    field="credibility",
                )
        for number, text in enumerate(self.add, 1):
            if not text.strip():
                raise ConfigError(
                    f"text {number} to add is empty. Nothing was computed.", field="add"
                )

    @property
    def names(self) -> tuple[str, ...]:
        """The items that are spoken of."""
        return (*self.drop, *self.weights, *self.credibility)

    def field_of(self, name: str) -> str:
        """The field that speaks of an item."""
        fields = ("drop", "weights", "credibility")
        return next(field for field in fields if name in getattr(self, field))

    def __bool__(self) -> bool:
        return bool(self.names or self.facts or self.add)


def supposed(
    result: QueryResult,
    engine: Engine | None,
    background: Background,
    changes: Changes,
    added: Sequence[NewText] = (),
    copy_similarity: float | None = None,
    text_part: slice = slice(None),
) -> AnswerExplanation:
    """The answer ``result``, which has the assumed facts already, with everything else changed.
    ``added`` are the texts of ``changes``; they are copies of items that their ``text_part`` is
    nearly equal to. ConfigError for an item that the answer was not computed from."""
    answered = answered_of(result, background)
    items = result.evidence
    used = () if items is None else items.ids
    unknown = [name for name in changes.names if name not in used]
    if unknown:
        raise ConfigError(
            f"the answer was not computed from {unknown}; its items are {list(used)[:20]}. Nothing "
            "was computed.",
            field=changes.field_of(unknown[0]),
        )
    if not changes.names and not added:
        return explained(answered if items is None else with_engine(answered, result, engine))
    if result.source == "canonical" or engine is None:
        why = "there is no model to read texts with"
        if engine is not None:
            why = (
                f"a known fact answers the question about {result.entity_id!r}, whatever items say"
            )
        raise ConfigError(f"{why}. Nothing was computed.", field="changes")
    least = result.options.min_credibility or 0.0
    changed = _changed(items, changes, added, engine, copy_similarity, text_part, least)
    answered = replace(answered, notes=() if items is None else answered.notes, deferred=None)
    if not len(changed):
        return explained(replace(answered, probabilities=np.exp(answered.alone), method="spn"))
    return _answered_again(answered, result, changed, engine, changes)


def _changed(
    items: Items | None,
    changes: Changes,
    added: Sequence[NewText],
    engine: Engine,
    copy_similarity: float | None,
    text_part: slice,
    least_credibility: float,
) -> Items:
    """The items that are left, with their new credibility, and the new ones after them. Those whose
    credibility is now below the least that counts are left out, as a question leaves them out."""
    width = engine.runtime.config.encoder.input_width
    if items is None:
        items = Items(np.empty((0, width), np.float32))
    credibility = items.credibility.copy()
    for place, name in enumerate(items.ids):
        if name in changes.credibility:
            given = changes.credibility[name]
            credibility[place] = np.nan if given is None else given
    below = credibility < least_credibility  # False if it is not known
    kept = [p for p, name in enumerate(items.ids) if name not in changes.drop and not below[p]]
    rows = np.array(kept, dtype=np.intp)
    blank = np.zeros(len(items), np.bool_) if items.wordless is None else items.wordless
    features = np.concatenate(
        [items.features[rows], *(one.features[None].astype(np.float32) for one in added)]
    )
    new = [np.nan if one.credibility is None else one.credibility for one in added]
    return Items(
        features,
        [*(items.ids[row] for row in rows), *(one.evidence_id for one in added)],
        _keys(items, rows, added, engine.runtime.config.reader_id),
        np.concatenate([credibility[rows], new]),
        _copies(items, rows, added, features, copy_similarity, text_part),
        np.concatenate([items.sources[rows], np.full(len(added), -1, np.int64)]),
        Segments.one(len(features)),
        wordless=np.concatenate([blank[rows], [one.is_wordless for one in added]]).astype(np.bool_),
    )


def _keys(items: Items, rows: Places, added: Sequence[NewText], reader_id: str) -> KeyArray | None:
    """What random draws are seeded with: the same for the items that are left."""
    if items.keys is None and len(rows):
        return None
    known = np.empty(0, np.uint64) if items.keys is None else items.keys[rows]
    new = stored_keys([one.key for one in added], reader_id)
    return np.concatenate([known, new])


def _copies(
    items: Items,
    rows: Places,
    added: Sequence[NewText],
    features: Float32Array,
    similarity: float | None,
    text_part: slice,
) -> GroupArray:
    """Groups of copies as they were found; a new text joins that of an item that it repeats."""
    groups = np.concatenate([items.groups[rows], np.full(len(added), -1, np.int64)])
    if not added:
        return groups
    known = items.content_keys
    keys = [known[row] if known else b"item %d" % row for row in rows.tolist()]
    keys += [one.key for one in added]
    labels = copy_labels(keys, [None] * len(keys), features[:, text_part], similarity)
    if labels is None:
        return groups
    for place in range(len(rows), len(groups)):
        same = np.flatnonzero(labels == labels[place])
        if len(same) > 1:
            known_group = groups[same].max()
            groups[same] = groups.max() + 1 if known_group < 0 else known_group
    return groups


def _answered_again(
    answered: Answered, result: QueryResult, changed: Items, engine: Engine, changes: Changes
) -> AnswerExplanation:
    options = replace(result.options, uncertainty_samples=0, without_claim_prior=False)
    is_robust = result.options.mode == "robust" and result.options.variant == "spn"
    for name in ("weights", "credibility"):
        if getattr(changes, name) and not is_robust:
            raise ConfigError(
                "plays a part in robust mode with the variant spn only. Nothing was computed.",
                field=name,
            )
    if result.options.variant == "learned":
        answers = engine.answer(changed, answered.predicate, options)
    else:
        factors = _factors(result.evidence, changed, engine, answered.predicate, options)
        answers = engine.answer(
            changed, answered.predicate, options, factors=factors, log_prior=answered.base[None]
        )
    answers.fill(changed, 0)
    found = with_engine(
        replace(answered, probabilities=answers.distribution[0], method=answers.method),
        replace(result, evidence=changed, method=answers.method),
        engine,
    )
    if not changes.weights:
        return explained(found)
    weights = np.array([changes.weights.get(name, 1.0) for name in changed.ids])
    given = np.ones(len(weights)) if changed.familiarity is None else changed.familiarity
    plain = changed.familiarity
    changed.familiarity = given * weights
    weighted = recombination_of(found, changed)
    assert isinstance(weighted, RobustItems)  # checked above
    probabilities: FloatArray = weighted.combined().distribution[0]
    return explained(replace(found, probabilities=probabilities, given=weights, familiarity=plain))


def _factors(
    before: Items | None, changed: Items, engine: Engine, predicate: str, options: QueryOptions
) -> Factors:
    """Those of the answer for items that it has, to the last bit, and new ones for new texts."""
    factors = engine.factors(changed, predicate, options)
    if before is None or before.potential is None or before.mean_sigma is None:
        return factors
    potential, mean_sigma = factors.potential.copy(), factors.mean_sigma.copy()
    places = {name: place for place, name in enumerate(before.ids)}
    for row, name in enumerate(changed.ids):
        if name in places:
            potential[row] = before.potential[places[name]]
            mean_sigma[row] = before.mean_sigma[places[name]]
    return replace(factors, potential=potential, mean_sigma=mean_sigma)
