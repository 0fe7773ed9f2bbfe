"""Answers that more evidence would lead to: with items of a pool added, and with facts assumed.

Items are combined as an answer combines them, on top of what the circuit says. Adding an item j to
the items of a path gives q(y) from the engine's own combination. A fact R = r changes what the
circuit says from T(y) to T(y, r), and the items multiply it as before:

    P(y, r | E) ∝ T(y, r) · answer(y) / T(y)

which is exact: the items say something about R only through y and R's own evidence, which is in T.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from lpf.circuits.queries import joint_table
from lpf.engine import Background, Engine, Facts
from lpf.explain.information import Outlook, outlook_of_items, outlook_of_joint
from lpf.explain.of_answers import Answered, answered_of, recombination_of, with_engine
from lpf.explain.recombination import Places, Recombination
from lpf.explain.stored_pool import StoredPool
from lpf.index.copies import numbered
from lpf.items import Items, Segments
from lpf.orchestrator.known_facts import likelihood
from lpf.results import QueryResult
from lpf.types import FloatArray, QueryOptions


@dataclass(frozen=True)
class Path:
    """What is supposed to have been collected: positions of items of the pool, and facts."""

    items: tuple[int, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)


class Future:
    """The answer ``result`` and what it would be. Without a ``pool`` there are only facts."""

    def __init__(
        self,
        result: QueryResult,
        engine: Engine | None,
        background: Background,
        pool: StoredPool | None,
        own_sources: tuple[str | None, ...] = (),
    ) -> None:
        """``own_sources`` are those of the items of ``result``."""
        self._result = result
        self._background = background
        self._own = 0 if result.evidence is None else len(result.evidence)
        items = _joined(result.evidence, pool, own_sources)
        self._combination: Recombination | None = None
        if items is not None and len(items) and engine is not None:
            answered = answered_of(result, background)
            self._combination = _combination(answered, result, items, engine)
        self._counts = _are_used(items, result)
        self._log_circuit = cache(self._make_log_circuit)

    def now(self, path: Path) -> FloatArray:
        """The answer [V]."""
        rows = self._rows(path)
        return np.asarray(self._answers(path, [rows[self._counts[rows]]])[0])

    def items(self, path: Path, places: Places) -> Outlook:
        """One more of the items at ``places`` of the pool. Those that the question would not use
        leave the answer as it is."""
        rows = self._rows(path)

        def answers(selections: Sequence[Places]) -> FloatArray:
            return self._answers(path, [one[self._counts[one]] for one in selections])

        found = outlook_of_items(answers, [rows], self._own + places)
        return found.only

    def fact(self, path: Path, name: str) -> Outlook:
        """The value of a related predicate, in the order of its values."""
        table = self._log_table(name, path.facts).T
        now = self.now(path)
        total = np.logaddexp.reduce(table, axis=0)
        given = table - np.where(total > -np.inf, total, 0.0)
        return outlook_of_joint(np.exp(given) * now)

    def values_of(self, name: str) -> tuple[str, ...]:
        """The values of a predicate, in the order of the outcomes of ``fact``."""
        return self._background.schema[name].values

    def _rows(self, path: Path) -> Places:
        added = np.array(path.items, np.intp) + self._own
        return np.concatenate([np.arange(self._own), added])

    def _answers(self, path: Path, selections: Sequence[Places]) -> FloatArray:
        if self._combination is None:
            found = np.tile(np.array(self._result.probabilities), (len(selections), 1))
        else:
            found = self._combination.answers(selections)
        if not path.facts:
            return found
        with np.errstate(divide="ignore", invalid="ignore"):
            shift = self._log_circuit(frozenset(path.facts.items())) - self._log_circuit(
                frozenset()
            )
        shifted = found * np.exp(np.nan_to_num(shift, nan=-np.inf, neginf=-np.inf))
        return np.asarray(shifted / shifted.sum(axis=1, keepdims=True))

    def _make_log_circuit(self, facts: frozenset[tuple[str, str]]) -> FloatArray:
        known = self._known(dict(facts))
        return self._background.circuit.log_joint(
            self._result.predicate, known.hard, known.soft, known.log_soft
        )

    def _log_table(self, name: str, facts: Mapping[str, str]) -> FloatArray:
        """log P(y, r) [V, R] of the circuit with everything known, up to a constant."""
        known = self._known(facts)
        table = joint_table(
            self._background.circuit,
            [self._result.predicate, name],
            known.hard,
            known.soft,
            known.log_soft,
        )
        with np.errstate(divide="ignore"):
            return np.log(table)

    def _known(self, facts: Mapping[str, str]) -> Facts:
        """The facts of the answer, evidence about related predicates, and ``facts``."""
        result, schema = self._result, self._background.schema
        hard = {one.predicate: one.value for one in result.facts if one.role == "hard"}
        soft = {
            one.predicate: likelihood(schema[one.predicate], one.value, one.strength)
            for one in result.facts
            if one.role == "soft" and one.predicate not in facts
        }
        log_soft = {
            one.predicate: one.items.contributions.sum(axis=0)
            for one in result.related
            if one.items.contributions is not None and one.predicate not in facts
        }
        return Facts({**hard, **facts}, soft, log_soft)


def _joined(
    own: Items | None, pool: StoredPool | None, own_sources: tuple[str | None, ...]
) -> Items | None:
    """The entity's items, then those of the pool, as items of one entity."""
    if pool is None or not len(pool.items):
        return None if own is None else own.copy()
    parts = [pool.items] if own is None or not len(own) else [own, pool.items]
    names = [*(own_sources if len(parts) == 2 else ()), *pool.source_names]
    together = Items.join(parts).copy()
    together.segments = Segments.one(len(together))
    together.sources = np.array(numbered(names), np.int64)
    return together


def combination_of(
    items: Items, engine: Engine, predicate: str, options: QueryOptions
) -> Recombination:
    """Items of any entities about which no facts are known, ready to be combined in any selection.
    A selection may have items of one entity and others in no group."""
    log_prior = engine.background.log_prior(predicate)
    prior = np.exp(log_prior - np.logaddexp.reduce(log_prior))
    values = engine.schema[predicate].values
    nothing = QueryResult("", predicate, values, prior.tolist(), "none", "prior", options, 0, 0)
    together = items.copy()
    together.segments = Segments.one(len(items))
    answered = answered_of(nothing, engine.background)
    return _combination(answered, nothing, together, engine)


def _combination(
    answered: Answered, result: QueryResult, items: Items, engine: Engine
) -> Recombination:
    """All items ready to be combined, of which the answer's own are some."""
    options = replace(result.options, uncertainty_samples=0, without_claim_prior=False)
    if result.method == "learned":  # also as a fallback
        options = QueryOptions(
            variant="learned", mode=options.mode, temperature=options.temperature
        )
    if options.variant == "learned":
        answers = engine.answer(items, result.predicate, options)
    else:
        base = answered.base[None]
        answers = engine.answer(items, result.predicate, options, log_prior=base)
    answers.fill(items, 0)
    found = with_engine(
        replace(answered, method=answers.method),
        replace(result, evidence=items, method=answers.method),
        engine,
    )
    return found.learned or recombination_of(found, items)


def _are_used(items: Items | None, result: QueryResult) -> NDArray[np.bool_]:
    """Which items the question would use, by their credibility."""
    if items is None:
        return np.empty(0, np.bool_)
    least = result.options.min_credibility or 0.0
    return np.asarray(~(items.credibility < least))
