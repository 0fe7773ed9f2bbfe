"""Explanations of a classifier's answers: the same as those of a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from lpf.classifier.answering import EntityBatch, FittedModel
from lpf.classifier.entities import PREDICATE, Entity
from lpf.engine import Answers, Items
from lpf.errors import ConfigError
from lpf.explain import AnswerExplanation, Changes, NewText, explain_result, supposed
from lpf.factors.keys import content_key
from lpf.items import MOST_UNUSED, LeftOut
from lpf.reading.words import wordless
from lpf.results import QueryResult, unfamiliar_notes
from lpf.types import Evidence, Float32Array, QueryOptions

NEW: Final = "new-"  # and a number: what texts that are added are called


def explanations(
    batch: EntityBatch, fitted: FittedModel, options: QueryOptions
) -> list[AnswerExplanation]:
    """One per entity, which are called ``X[0]``, ``X[1]`` and so on."""
    engine = fitted.engine
    return [
        _finished(explain_result(result, engine, engine.background), batch.entities[place])
        for place, result in enumerate(results(batch, fitted, options))
    ]


def what_if(
    batch: EntityBatch,
    fitted: FittedModel,
    options: QueryOptions,
    changes: Changes,
    added: Float32Array,
) -> AnswerExplanation:
    """The answer about the only entity of ``batch``, if ``changes`` were so. ``added`` [A, width]
    are the features of the texts that are added."""
    if changes.facts:
        raise ConfigError(
            "a classifier has one predicate, so no fact can be assumed. Nothing was computed.",
            field="facts",
        )
    ((entity,), (result,)) = batch.entities, results(batch, fitted, options)
    blank = wordless(changes.add)
    new = [
        NewText(
            f"{NEW}{place + 1}",
            added[place],
            content_key(text, entity.claim),
            is_wordless=blank is not None and bool(blank[place]),
        )
        for place, text in enumerate(changes.add)
    ]
    engine = fitted.engine
    found = supposed(result, engine, engine.background, changes, new, batch.copy_similarity)
    return _finished(found, entity, changes.add)


def item_names(entity: Entity) -> list[str]:
    """E1, E2 ... by place, except for items that came as ``lpf.Evidence`` with IDs of their own. If
    two would have the same name, or one that of a text that may be added, all go by their place."""
    by_place = [f"E{place}" for place in range(1, len(entity.evidence) + 1)]
    names = [
        name if own is None else own
        for name, own in zip(by_place, map(_own_id, entity.evidence), strict=True)
    ]
    are_distinct = len(set(names)) == len(names)
    return names if are_distinct and not any(map(_is_new, names)) else by_place


def results(batch: EntityBatch, fitted: FittedModel, options: QueryOptions) -> list[QueryResult]:
    """The answers of the engine, with the items that each is based on."""
    used = fitted.used(batch.items, options)
    least = 0.0  # all items count, unless a threshold was chosen with the model
    if len(used) < len(batch.items):
        least = fitted.engine.min_credibility(PREDICATE, options)
    answers = fitted.answer(batch.items.select(used), options) if len(used) else None
    kept = np.zeros(len(batch.items), bool)
    kept[used] = True
    options = replace(options, min_credibility=least)
    found, start, place = [], 0, 0
    for number, entity in enumerate(batch.entities):
        rows = start + np.flatnonzero(kept[start : start + len(entity.evidence)])
        names = item_names(entity)
        chosen = [names[row - start] for row in rows.tolist()]
        taken = set(chosen)
        left_out = [name for name in names if name not in taken]
        items = None
        if answers is not None and len(rows):
            items = _items(batch.items, rows, chosen)
            answers.fill(items, place)
        found.append(_result(number, items, answers, place, fitted, options, left_out))
        start += len(entity.evidence)
        place += bool(entity.evidence)  # the engine does not see entities without evidence
    return found


def _result(
    number: int,
    items: Items | None,
    answers: Answers | None,
    place: int,
    fitted: FittedModel,
    options: QueryOptions,
    left_out: Sequence[str],
) -> QueryResult:
    log_prior = fitted.engine.background.log_prior(PREDICATE)
    values = fitted.schema[PREDICATE].values
    named = {"below_credibility": tuple(left_out[:MOST_UNUSED])}
    if items is None or answers is None:
        prior = fitted.prior.tolist()
        return QueryResult(
            f"X[{number}]", PREDICATE, values, prior, "none", "prior", options, 0, 0, log_prior,
            none_of=LeftOut(below_credibility=len(left_out), named=named), threshold="model",
        )  # fmt: skip
    items.below_credibility, items.unused = len(left_out), named
    weighted = answers.method == "spn" and options.mode == "robust"
    notes = unfamiliar_notes(items, weighted=weighted)
    return QueryResult(
        f"X[{number}]",
        PREDICATE,
        values,
        answers.distribution[place].tolist(),
        "inference",
        answers.method,
        options,
        0,
        0,
        log_prior,
        items,
        notes=tuple(notes),
        threshold="model",
        claim_alone=None if answers.claim_alone is None else answers.claim_alone[place],
    )


def _items(every: Items, rows: np.ndarray, names: Sequence[str]) -> Items:
    one = every.select(rows)
    return Items(
        one.features,
        names,
        one.keys,
        one.credibility,
        one.groups,
        one.sources,
        wordless=one.wordless,
    )


def _finished(
    found: AnswerExplanation, entity: Entity, added: Sequence[str] = ()
) -> AnswerExplanation:
    """With texts and claim."""
    names = item_names(entity)
    texts = dict(zip(names, (one.text_content for one in entity.evidence), strict=True))
    texts |= {f"{NEW}{place + 1}": text for place, text in enumerate(added)}
    return replace(found, texts=texts, claim=entity.claim)


def _is_new(name: str) -> bool:
    return name.startswith(NEW)


def _own_id(item: Evidence) -> str | None:
    """None for an item that ``read_entities`` named after its place in X."""
    return None if item.evidence_id.startswith(f"{item.entity_id}[") else item.evidence_id
