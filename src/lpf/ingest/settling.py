"""What a row is to the store: new, there already, or in conflict with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lpf.ingest.drafts import Draft
from lpf.storage.evidence import EvidenceStore
from lpf.storage.times import iso

Conflict = tuple[Draft, str]


@dataclass
class Settled:
    """``new`` all have ids; a conflict comes with what it is."""

    new: list[Draft] = field(default_factory=list)
    unchanged: int = 0
    conflicts: list[Conflict] = field(default_factory=list)


@dataclass
class _Entity:
    """What is known of an entity whose items get their ids here."""

    hashes: set[bytes] = field(default_factory=set)
    highest: int = 0


class Settler:
    """Settles one batch after another.

    In a ``rehearsal`` nothing is written, so what earlier batches would have added is remembered.
    """

    def __init__(self, store: EvidenceStore, rehearsal: bool = False) -> None:
        self._store = store
        self._rehearsal = rehearsal
        self._rehearsed: dict[str, bytes] = {}
        self._entities: dict[str, _Entity] = {}

    def forget(self) -> None:
        """The store was changed by somebody else: look again."""
        self._entities = {}

    def settle(self, drafts: Sequence[Draft]) -> Settled:
        """Every draft in its order, as if those before it had been added."""
        given = [draft.evidence.evidence_id for draft in drafts if draft.has_id]
        taken = self._hashes(given)
        erased = self._store.erased(given)
        self._know_entities({d.evidence.entity_id for d in drafts if not d.has_id})
        settled = Settled()
        for draft in drafts:
            if draft.has_id:
                self._settle_named(draft, taken, erased, settled)
            else:
                self._settle_unnamed(draft, settled)
        settled.new = self._with_names(settled.new, set(given))
        if self._rehearsal:
            self._rehearsed.update(
                (draft.evidence.evidence_id, draft.content_hash) for draft in settled.new
            )
        return settled

    def _settle_named(
        self, draft: Draft, taken: dict[str, bytes], erased: dict[str, int], settled: Settled
    ) -> None:
        evidence_id = draft.evidence.evidence_id
        if evidence_id in erased:
            settled.conflicts.append((draft, f"was erased at {iso(erased[evidence_id])}"))
        elif evidence_id not in taken:
            taken[evidence_id] = draft.content_hash
            settled.new.append(draft)
            self._note(draft)
        elif taken[evidence_id] == draft.content_hash:
            settled.unchanged += 1
        else:
            reason = f"{evidence_id!r} is the id of an item with other content"
            settled.conflicts.append((draft, reason))

    def _note(self, draft: Draft) -> None:
        """As if the entity were looked up after this item is added: then a run that goes on where
        another was interrupted gives the same ids."""
        evidence = draft.evidence
        entity = self._entities.get(evidence.entity_id)
        if entity is not None:
            entity.hashes.add(draft.content_hash)
            number = _number(evidence.evidence_id, evidence.entity_id)
            entity.highest = max(entity.highest, number)

    def _settle_unnamed(self, draft: Draft, settled: Settled) -> None:
        entity = self._entities[draft.evidence.entity_id]
        if draft.content_hash in entity.hashes:
            settled.unchanged += 1
        else:
            entity.hashes.add(draft.content_hash)
            settled.new.append(draft)

    def _with_names(self, drafts: Sequence[Draft], taken: set[str]) -> list[Draft]:
        """Numbers go on from the highest of the entity, in order. A number is passed over where
        its id is taken by another entity's item, was erased, or is given in this batch."""
        while True:
            highest = {name: entity.highest for name, entity in self._entities.items()}
            named = [_named(draft, highest, taken) for draft in drafts]
            given_here = [
                after.evidence.evidence_id
                for before, after in zip(drafts, named, strict=True)
                if not before.has_id
            ]
            clashes = {*self._hashes(given_here), *self._store.erased(given_here)}
            if not clashes:
                break
            taken |= clashes
        for name, entity in self._entities.items():
            entity.highest = highest[name]
        return named

    def _hashes(self, evidence_ids: Sequence[str]) -> dict[str, bytes]:
        found = self._store.hashes(evidence_ids)
        if self._rehearsal:
            known = self._rehearsed
            found |= {name: known[name] for name in evidence_ids if name in known}
        return found

    def _know_entities(self, entity_ids: Iterable[str]) -> None:
        """Entities of the last batch are known still: files often hold them in a row. Others are
        forgotten, so that memory does not grow with the file."""
        known = self._entities
        wanted = {name: known.get(name) or _Entity() for name in entity_ids}
        fresh = wanted.keys() - known.keys()
        self._entities = {**known, **wanted} if self._rehearsal else wanted
        for entity_id, evidence_id, content_hash in self._store.hashes_of_entities(fresh):
            entity = wanted[entity_id]
            entity.hashes.add(content_hash)
            entity.highest = max(entity.highest, _number(evidence_id, entity_id))


def _named(draft: Draft, highest: dict[str, int], taken: set[str]) -> Draft:
    if draft.has_id:
        return draft
    entity_id = draft.evidence.entity_id
    while True:
        highest[entity_id] += 1
        name = f"{entity_id}_E{highest[entity_id]:03d}"
        if name not in taken:
            return draft.named(name)


def _number(evidence_id: str, entity_id: str) -> int:
    digits = evidence_id.removeprefix(f"{entity_id}_E")
    return int(digits) if digits.isascii() and digits.isdecimal() else 0
