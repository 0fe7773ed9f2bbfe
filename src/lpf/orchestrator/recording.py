"""From a result to the record that the ledger keeps.

What is the same for many questions (settings, fitted numbers, versions) is a context of its own,
stored once and named by its hash; so is a long list of factors. A record holds no text: items are
named by id and by the salted hash of what was read.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from lpf.ledger.canonical import canonical
from lpf.ledger.records import Draft, QueryText
from lpf.results import EvidenceUsed, QueryResult
from lpf.storage.times import iso
from lpf.types import FloatArray, QueryOptions

CONTEXT_FORMAT = "lpf-context/1"
# Up to so many items the factors stand in the record itself.
INLINE_ITEMS = 16


class Context:
    """What a record says by one hash."""

    __slots__ = ("body", "reference")

    def __init__(self, content: Mapping[str, Any]) -> None:
        self.body = canonical({"format": CONTEXT_FORMAT, **content})
        self.reference = {"blob": hashlib.sha256(self.body).hexdigest()}


def hyperparameters(asked: QueryOptions) -> dict[str, Any]:
    """The options as a record keeps them: what was asked with is kept elsewhere, see below."""
    options = asdict(asked)
    del options["query_text"], options["as_of"]
    return options


def draft_of(result: QueryResult, context: Context) -> Draft:
    """The record of a result, and what must be stored with it."""
    fields: dict[str, Any] = {
        "as_of": iso(result.as_of),
        "confidence": result.confidence,
        "context": context.reference,
        "distribution": result.distribution,
        "entity_id": result.entity_id,
        "execution_time_ms": round(result.execution_time_ms, 3),
        "method": result.method,
        "predicate": result.predicate,
        "query_type": result.source,
        "timestamp": iso(result.timestamp),
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
        _put_evidence(fields, blobs, result.evidence)
    texts: tuple[QueryText, ...] = ()
    if result.options.query_text is not None:
        texts = (salted(result.options.query_text),)
        fields["query_text"] = texts[0].commitment.hex()
    return Draft(fields, tuple(blobs), texts)


def salted(text: str) -> QueryText:
    """The words a question was asked with: named in the record by a salted hash, kept beside it
    and erasable like any text."""
    salt = os.urandom(16)
    return QueryText(hashlib.sha256(salt + text.encode()).digest(), salt, text)


def numbers(row: FloatArray) -> list[float | None]:
    """Plain numbers; None stands for minus infinity, which JSON does not have."""
    return [number if number > -np.inf else None for number in row.tolist()]


def _put_evidence(fields: dict[str, Any], blobs: list[bytes], used: EvidenceUsed) -> None:
    fields["evidence_chain"] = [
        [name, commitment.hex()]
        for name, commitment in zip(used.ids, used.commitments, strict=True)
    ]
    factors = _factors(used)
    if len(used) <= INLINE_ITEMS:
        fields["factors"] = factors
        return
    body = canonical(factors)
    blobs.append(body)
    fields["factors"] = {"blob": hashlib.sha256(body).hexdigest()}


def _factors(used: EvidenceUsed) -> dict[str, Any]:
    """All that the combination is recomputed from. Weights follow from it, but for those of the
    variant ``learned``."""
    if used.members is not None:
        return {"members": used.members.tolist(), "weight": used.weight.tolist()}
    assert used.potential is not None  # all ways but learned have factors
    assert used.mean_sigma is not None
    credibility = used.credibility.tolist()
    factors: dict[str, Any] = {
        "credibility": [None if c != c else c for c in credibility],  # NaN: unknown
        "mean_sigma": used.mean_sigma.tolist(),
        "potential": used.potential.tolist(),
    }
    for name, array in (("group", used.groups), ("source", used.sources)):
        listed = array.tolist()
        if max(listed) >= 0:
            factors[name] = listed
    return factors


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
