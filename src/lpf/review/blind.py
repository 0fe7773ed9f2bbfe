"""The evidence of an answer, as a reviewer sees it who must not see the answer.

Nothing here says what the model made of the items: they are in the order of their IDs, without
weights, and neither the record of the answer nor known facts about the same predicate are named.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lpf.errors import ReviewError, UnknownEvidenceError
from lpf.storage.evidence import DamagedItem, EvidenceStore, StoredEvidence
from lpf.storage.values import iso, to_micros


@dataclass(frozen=True, slots=True)
class BlindItem:
    """One item. ``text`` is None if it cannot be shown, and ``missing`` says why."""

    evidence_id: str
    predicate: str
    text: str | None
    claim: str | None = None
    source: str | None = None
    credibility: float | None = None
    date: str | None = None
    missing: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "evidence_id": self.evidence_id,
            "predicate": self.predicate,
            "text": self.text,
            "claim": self.claim,
            "source": self.source,
            "credibility": self.credibility,
            "date": self.date,
            "missing": self.missing or None,
        }


@dataclass(frozen=True, slots=True)
class BlindCase:
    """What a reviewer is asked: the question, its values, known facts about other predicates, and
    the items that the answer was computed from."""

    entity_id: str
    predicate: str
    description: str
    values: tuple[str, ...]
    items: tuple[BlindItem, ...]
    facts: Mapping[str, str]

    def to_dict(self) -> dict[str, Any]:
        return {
            "entity_id": self.entity_id,
            "predicate": self.predicate,
            "description": self.description or None,
            "values": list(self.values),
            "items": [one.to_dict() for one in self.items],
            "facts": dict(self.facts),
        }


def items_of(answer: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Predicate and salted hash of each item that was read for the answer. ReviewError if there are
    none: then there is nothing to judge without the answer."""
    parts = [(answer["predicate"], answer.get("evidence_chain", ()))]
    parts += [(one["predicate"], one["evidence_chain"]) for one in answer.get("related", ())]
    chain = {name: (predicate, mark) for predicate, items in parts for name, mark in items}
    if not chain:
        raise ReviewError(
            f"the answer about {answer['entity_id']!r} was not computed from any items, so there "
            "is nothing to judge without seeing it. Nothing was shown or recorded.",
            field="entity",
            hint="Review it openly: lpf review accept RECORD, or override RECORD VALUE.",
        )
    return chain


def blind_case(answer: Mapping[str, Any], description: str, store: EvidenceStore) -> BlindCase:
    """The case of a recorded answer, whose fields have all blobs filled in. ReviewError as from
    ``items_of``, and if all texts are erased or damaged."""
    chain = items_of(answer)
    items = tuple(_item(name, *chain[name], store) for name in sorted(chain))
    if all(one.text is None for one in items):
        raise ReviewError(
            f"no item of the answer about {answer['entity_id']!r} can be shown any more: "
            f"{items[0].evidence_id} is {items[0].missing}. Nothing was shown or recorded.",
            field="entity",
            hint="Ask the question again: lpf query.",
        )
    facts = {
        one["predicate"]: one["value"]
        for one in answer.get("facts", ())
        if one["predicate"] != answer["predicate"]
    }
    return BlindCase(
        answer["entity_id"],
        answer["predicate"],
        description,
        tuple(answer["context"]["values"]),
        items,
        facts,
    )


def _item(name: str, predicate: str, mark: str, store: EvidenceStore) -> BlindItem:
    damaged: list[DamagedItem] = []
    try:
        versions: Sequence[StoredEvidence] = store.versions(name, damaged)
    except UnknownEvidenceError:
        return BlindItem(name, predicate, None, missing="erased, or not in this store")
    read = [one for one in versions if one.commitment.hex() == mark]
    if not read:
        why = "damaged in the store" if damaged else "not in this store"
        return BlindItem(name, predicate, None, missing=why)
    item = read[-1].evidence
    return BlindItem(
        name,
        predicate,
        item.text_content,
        item.claim,
        item.source,
        item.credibility,
        None if item.timestamp is None else iso(to_micros(item.timestamp))[: len("2026-01-25")],
    )
