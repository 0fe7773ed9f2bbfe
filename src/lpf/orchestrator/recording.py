"""From a result to the record that the ledger stores.

What many questions share (settings, fitted numbers, versions) is a context,
stored once and named by its hash; so is a long list of factors. A record has no texts: items are
named by their id and by the salted hash of what was read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import Any

import numpy as np

from lpf.engine import Background, Engine, Items
from lpf.ledger.canonical import canonical
from lpf.ledger.records import Draft, QueryText, reference, salted
from lpf.results import FactUsed, Method, QueryResult, RelatedEvidence
from lpf.schema import Schema
from lpf.storage.values import iso
from lpf.types import FloatArray, QueryOptions
from lpf.version import __version__

CONTEXT_FORMAT = "lpf-context/1"
# With more items than this the factors are a blob of their own.
INLINE_ITEMS = 16


class Context:
    """The part of a record that many questions share. ``by_source`` is True if the items' sources
    were used; ``related_by_source`` names the related predicates for which they were."""

    __slots__ = ("body", "by_source", "reference", "related_by_source")

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.by_source = _uses_sources(content)
        related = content.get("related", {})
        self.related_by_source = {name for name, of in related.items() if _uses_sources(of)}
        self.body = canonical({"format": CONTEXT_FORMAT, **content})
        self.reference = reference(self.body)


def _uses_sources(content: Mapping[str, Any]) -> bool:
    return bool(content.get("parameters", {}).get("source_epsilon", 0.0) > 0.0)


def draft_of(result: QueryResult, context: Context, asked_by: str | None = None) -> Draft:
    """The record of a result, and what must be stored with it. ``asked_by`` says who asked, or is
    None if that is not recorded."""
    timestamp = iso(result.timestamp)
    fields: dict[str, Any] = {
        "as_of": timestamp if result.as_of == result.timestamp else iso(result.as_of),
        "confidence": result.confidence,
        "context": context.reference,
        "distribution": result.distribution,
        "entity_id": result.entity_id,
        "execution_time_ms": round(result.execution_time_ms, 3),
        "method": result.method,
        "predicate": result.predicate,
        "query_type": result.source,
        "timestamp": timestamp,
        "top_value": result.top_value,
    }
    blobs = [context.body]
    if asked_by is not None:
        fields["asked_by"] = asked_by
    if result.facts:
        fields["facts"] = [_fact(used) for used in result.facts]
    has_base = result.facts or result.related or result.claim_alone is not None
    if has_base and result.log_prior is not None:
        fields["base"] = numbers(result.log_prior)
    if result.claim_alone is not None:
        fields["claim_alone"] = numbers(result.claim_alone)
    if result.related:
        fields["related"] = [
            _related(one, one.predicate in context.related_by_source, blobs)
            for one in result.related
        ]
    if result.notes:
        fields["notes"] = list(result.notes)
    if result.uncertainty is not None:
        fields["uncertainty"] = dict(result.uncertainty)
    if result.prediction_set is not None:
        fields["prediction_set"] = result.prediction_set.to_dict()
    if result.decision is not None:
        fields["decision"] = result.decision.to_dict()
    if result.evidence is not None:
        fields |= _chain(result.evidence, context.by_source, blobs)
    texts: tuple[QueryText, ...] = ()
    if result.options.query_text is not None:
        texts = (salted(result.options.query_text),)
        fields["query_text"] = texts[0].commitment.hex()
    return Draft(fields, blobs, texts)


def numbers(row: FloatArray) -> list[float | None]:
    """Plain numbers; None means minus infinity, which JSON does not have."""
    return [number if number > -np.inf else None for number in row.tolist()]


def _chain(items: Items, by_source: bool, blobs: list[bytes]) -> dict[str, Any]:
    """The items by id and salted hash, and their factors. A long list of factors goes to
    ``blobs``."""
    hashes = [commitment.hex() for commitment in items.commitments]
    factors = _factors(items, by_source)
    if len(items) > INLINE_ITEMS:
        blobs.append(canonical(factors))
        factors = reference(blobs[-1])
    return {"evidence_chain": list(zip(items.ids, hashes, strict=True)), "factors": factors}


def _related(one: RelatedEvidence, by_source: bool, blobs: list[bytes]) -> dict[str, Any]:
    return {
        "predicate": one.predicate,
        "contribution": numbers(one.contribution),
        "distribution": dict(zip(one.values, one.distribution, strict=True)),
        **_chain(one.items, by_source, blobs),
    }


def _factors(items: Items, by_source: bool) -> dict[str, Any]:
    """Everything needed to combine the items again. Weights follow from it, except for those of
    the variant ``learned``."""
    familiarity = _familiarity(items)
    if items.members is not None:
        return {
            "members": items.members.tolist(),
            "weight": items.weight.tolist(),
            **familiarity,
        }
    assert items.potential is not None  # only the variant learned has no factors
    assert items.mean_sigma is not None
    factors: dict[str, Any] = {
        "credibility": [None if x != x else x for x in items.credibility.tolist()],  # NaN: unknown
        "mean_sigma": items.mean_sigma.tolist(),
        "potential": items.potential.tolist(),
        **familiarity,
    }
    if items.relevance is not None:
        factors["relevance"] = items.relevance.tolist()
    if items.stances is not None:
        factors["stances"] = items.stances.tolist()
    groups = items.groups.tolist()
    if max(groups) >= 0:
        factors["group"] = groups
    if by_source:
        factors["source"] = items.sources.tolist()
    return factors


def _familiarity(items: Items) -> dict[str, list[float]]:
    """Nothing if every item counts fully, which is the rule: then the record stays small."""
    if items.familiarity is None or bool((items.familiarity >= 1.0).all()):
        return {}
    return {"familiarity": items.familiarity.tolist()}


def _fact(used: FactUsed) -> dict[str, Any]:
    return {
        "confidence": used.confidence,
        "fact_id": used.fact_id,
        "predicate": used.predicate,
        "role": used.role,
        "strength": used.strength,
        "timestamp": iso(used.timestamp),
        "value": used.value,
    }


def shared_options(options: QueryOptions) -> QueryOptions:
    """``options`` without query text and ``as_of``, for use as a cache key. A query text
    must not stay in memory as part of a key."""
    if options.query_text is None and options.as_of is None:
        return options
    return replace(options, query_text=None, as_of=None)


def hyperparameters(options: QueryOptions) -> dict[str, Any]:
    """The options as stored in a context. Query text and ``as_of`` belong to the record itself.
    Records without ``related_evidence`` or another of the last ones, among them all of earlier
    versions, did not use them."""
    document = asdict(options) | {"top_k": options.most_items}
    used: dict[str, Any] = {
        "related_evidence": options.uses_related,
        "without_claim_prior": options.without_claim_prior,
        "coverage": options.coverage,
        "coverage_by_value": options.coverage_by_value,
        "max_risk": options.max_risk,
    }
    for name in ("query_text", "as_of", *used):
        del document[name]
    return document | {name: value for name, value in used.items() if value}


class Contexts:
    """Settings, fitted numbers and versions of each kind of question, each written once."""

    def __init__(
        self, schema: Schema, background: Background, engine: Engine | None, reader_id: str
    ) -> None:
        self._schema = schema
        self._background = background
        self._engine = engine
        self._reader_id = reader_id
        self._cached = lru_cache(maxsize=256)(self._make)

    def of(self, result: QueryResult) -> Context:
        options = shared_options(result.options)
        related = tuple([(one.predicate, one.min_credibility) for one in result.related])
        has_evidence = result.evidence is not None
        return self._cached(result.predicate, options, result.method, has_evidence, related)

    def _make(
        self,
        predicate: str,
        options: QueryOptions,
        method: Method,
        has_evidence: bool,
        related: tuple[tuple[str, float], ...],
    ) -> Context:
        content: dict[str, Any] = {
            "predicate": predicate,
            "values": list(self._schema[predicate].values),
            "method": method,
            "hyperparameters": hyperparameters(options),
            "log_prior": numbers(self._background.log_prior(predicate)),
            "versions": self._versions(),
        }
        if has_evidence:
            content |= self._inference(predicate, options, method)
        if related:
            content["related"] = {
                name: {
                    "values": list(self._schema[name].values),
                    "log_prior": numbers(self._background.log_prior(name)),
                    "min_credibility": min_credibility,
                    **self._inference(name, options, method),
                }
                for name, min_credibility in related
            }
        return Context(content)

    def _inference(self, predicate: str, options: QueryOptions, method: Method) -> dict[str, Any]:
        assert self._engine is not None  # answers from evidence need a model
        members = "best" if options.mode == "paper" else "all"
        if method == "learned":
            temperature = self._engine.learned_temperature(predicate, options)
            return {"members": members, "temperature": temperature}
        converter, parameters = self._engine.conversion(predicate, options)
        config, silent = converter.config, self._engine.silent(predicate)
        ratios = self._engine.runtime.config.head(predicate).occurrence_ratios
        return {
            "members": members,
            "sampler": {
                "name": config.sampler,
                "n_samples": config.samples,
                "temperature": config.temperature,
                "seed": config.seed,
            },
            "parameters": dict(parameters.to_dict()),
            "training_shares": self._engine.shares(predicate).tolist(),
            **({} if silent is None else {"silent": silent.tolist()}),
            **({"occurrence_ratios": [list(row) for row in ratios]} if ratios else {}),
        }

    def _versions(self) -> dict[str, Any]:
        return {
            "circuit": self._background.circuit.circuit.hash,
            "code": __version__,
            "model": None if self._engine is None else self._engine.runtime.version,
            "reader": self._reader_id,
            "schema": self._schema.hash,
        }
