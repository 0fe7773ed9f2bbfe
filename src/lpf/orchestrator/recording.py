"""From a result to the record that the ledger keeps.

What is the same for many questions (settings, fitted numbers, versions) is a context of its own,
stored once and named by its hash; so is a long list of factors. A record holds no text: items are
named by id and by the salted hash of what was read.

The part of a record that many questions share.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache
from typing import Any

import numpy as np

from lpf.combine.paper import PaperParameters
from lpf.combine.robust import RobustParameters
from lpf.engine import Background, Engine
from lpf.ledger.canonical import Fragment, canonical
from lpf.ledger.records import Draft, QueryText, query_text_commitment, reference
from lpf.results import EvidenceUsed, Method, QueryResult
from lpf.schema import Schema
from lpf.storage.values import iso
from lpf.types import FloatArray, QueryOptions, cacheable
from lpf.version import __version__

CONTEXT_FORMAT = "lpf-context/1"
# Up to so many items the factors stand in the record itself.
INLINE_ITEMS = 16
# Written parts of so many questions are kept, and only of such small ones.
MOST_WRITTEN = 1024
TIMES = ("as_of", "execution_time_ms", "timestamp")


class Context:
    """What a record says by one hash. ``by_source``: whether the items' sources took part."""

    __slots__ = ("body", "by_source", "reference")

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.by_source = content.get("parameters", {}).get("source_epsilon", 0.0) > 0.0
        self.body = canonical({"format": CONTEXT_FORMAT, **content})
        self.reference = Fragment(canonical(reference(self.body)).decode())


def hyperparameters(asked: QueryOptions) -> dict[str, Any]:
    """The options as a record keeps them: what was asked with is kept elsewhere, see below."""
    options = asdict(asked)
    del options["query_text"], options["as_of"]
    return options


def times_of(result: QueryResult) -> dict[str, str | float]:
    """The fields in which records of answers that were worked out once differ."""
    timestamp = iso(result.timestamp)
    return {
        "as_of": timestamp if result.as_of == result.timestamp else iso(result.as_of),
        "execution_time_ms": round(result.execution_time_ms, 3),
        "timestamp": timestamp,
    }


def draft_of(result: QueryResult, context: Context) -> Draft:
    """The record of a result, and what must be stored with it."""
    fields: dict[str, Any] = {
        **times_of(result),
        "confidence": result.confidence,
        "context": context.reference,
        "distribution": result.distribution,
        "entity_id": result.entity_id,
        "method": result.method,
        "predicate": result.predicate,
        "query_type": result.source,
        "top_value": result.top_value,
    }
    blobs = [context.body]
    if result.facts:
        fields["facts"] = [_fact(used) for used in result.facts]
        if result.base is not None:
            fields["base"] = numbers(result.base)
    if result.notes:
        fields["notes"] = list(result.notes)
    if result.uncertainty is not None:
        fields["uncertainty"] = dict(result.uncertainty)
    if result.evidence is not None:
        _put_evidence(fields, blobs, result.evidence, context.by_source)
    texts: tuple[QueryText, ...] = ()
    if result.options.query_text is not None:
        texts = (salted(result.options.query_text),)
        fields["query_text"] = texts[0].commitment.hex()
    return Draft(fields, tuple(blobs), texts)


def salted(text: str) -> QueryText:
    """The words a question was asked with: named in the record by a salted hash, kept beside it
    and erasable like any text."""
    salt = os.urandom(16)
    return QueryText(query_text_commitment(salt, text), salt, text)


def numbers(row: FloatArray) -> list[float | None]:
    """Plain numbers; None stands for minus infinity, which JSON does not have."""
    return [number if number > -np.inf else None for number in row.tolist()]


def _put_evidence(
    fields: dict[str, Any], blobs: list[bytes], used: EvidenceUsed, by_source: bool
) -> None:
    is_small = len(used) <= INLINE_ITEMS
    chain = _kept_chain if is_small else _chain
    fields["evidence_chain"] = chain(used.ids, used.commitments)
    factors = _factors(used, by_source)
    if is_small:
        fields["factors"] = factors
        return
    body = factors.encode()
    blobs.append(body)
    fields["factors"] = reference(body)


def _factors(used: EvidenceUsed, by_source: bool) -> Fragment:
    """All that the combination is recomputed from. Weights follow from it, but for those of the
    variant ``learned``."""
    if used.members is not None:
        learned = {"members": used.members.tolist(), "weight": used.weight.tolist()}
        return Fragment(canonical(learned).decode())
    assert used.potential is not None  # all ways but learned have factors
    assert used.mean_sigma is not None
    written = _kept_written if len(used) <= INLINE_ITEMS else _written
    return written(
        used.potential.tobytes(),
        used.potential.shape[1],
        used.mean_sigma.tobytes(),
        used.credibility.tobytes(),
        tuple(used.groups.tolist()),
        tuple(used.sources.tolist()) if by_source else None,
    )


def _written(
    potential: bytes,
    width: int,
    mean_sigma: bytes,
    credibility: bytes,
    groups: tuple[int, ...],
    sources: tuple[int, ...] | None,
) -> Fragment:
    """The numbers are float64; in the credibility NaN stands for unknown."""
    factors: dict[str, Any] = {
        "credibility": [None if x != x else x for x in np.frombuffer(credibility).tolist()],
        "mean_sigma": np.frombuffer(mean_sigma).tolist(),
        "potential": np.frombuffer(potential).reshape(-1, width).tolist(),
    }
    if max(groups) >= 0:
        factors["group"] = groups
    if sources is not None:
        factors["source"] = sources
    return Fragment(canonical(factors).decode())


def _chain(ids: tuple[str, ...], commitments: tuple[bytes, ...]) -> Fragment:
    pairs = zip(ids, [commitment.hex() for commitment in commitments], strict=True)
    return Fragment(canonical(list(pairs)).decode())


# The same items are asked about again and again, and writing numbers is what a record costs most.
_kept_written = lru_cache(MOST_WRITTEN)(_written)
_kept_chain = lru_cache(MOST_WRITTEN)(_chain)


def _fact(used: Any) -> dict[str, Any]:
    return {
        "confidence": used.confidence,
        "fact_id": used.fact_id,
        "predicate": used.predicate,
        "role": used.role,
        "strength": used.strength,
        "timestamp": iso(used.timestamp),
        "value": used.value,
    }


class Contexts:
    """Settings, fitted numbers and versions of each kind of question, made once and kept."""

    def __init__(
        self, schema: Schema, background: Background, engine: Engine | None, reader_id: str
    ) -> None:
        self._schema = schema
        self._background = background
        self._engine = engine
        self._reader_id = reader_id
        self._kept = lru_cache(maxsize=256)(self._make)

    def of(self, result: QueryResult) -> Context:
        options = cacheable(result.options)
        return self._kept(result.predicate, options, result.method, result.evidence is not None)

    def _make(
        self, predicate: str, options: QueryOptions, method: Method, has_evidence: bool
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
        return Context(content)

    def _inference(self, predicate: str, options: QueryOptions, method: Method) -> dict[str, Any]:
        assert self._engine is not None  # evidence is only answered from with a model
        members = "best" if options.mode == "paper" else "all"
        if method == "learned":
            temperature = self._engine.learned_temperature(predicate, options)
            return {"members": members, "temperature": temperature}
        converter, parameters = self._engine.conversion(predicate, options)
        config = converter.config
        return {
            "members": members,
            "sampler": {
                "name": config.sampler,
                "n_samples": config.samples,
                "temperature": config.temperature,
                "seed": config.seed,
            },
            "parameters": _parameters(parameters),
            "training_shares": self._engine.shares(predicate).tolist(),
        }

    def _versions(self) -> dict[str, Any]:
        return {
            "circuit": self._background.circuit.circuit.hash,
            "code": __version__,
            "model": None if self._engine is None else self._engine.runtime.version,
            "reader": self._reader_id,
            "schema": self._schema.hash,
        }


def _parameters(parameters: RobustParameters | PaperParameters) -> dict[str, Any]:
    return dict(parameters.to_dict())
