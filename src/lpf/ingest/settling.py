"""What a row is to the store: new, there already, or in conflict with what is there."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lpf.ingest.evidence_rows import EvidenceDraft
from lpf.storage.evidence import EvidenceStore
from lpf.storage.values import iso

Conflict = tuple[EvidenceDraft, str]

LONGEST_NUMBER = 9  # digits; longer ones are names that somebody gave


@dataclass
class Settled:
    """``new`` all have ids; a conflict comes with what it is."""

    new: list[EvidenceDraft] = field(default_factory=list)
    unchanged: int = 0
    conflicts: list[Conflict] = field(default_factory=list)


class Settler:
    """Settles one batch after another.

    In a ``rehearsal`` nothing is written, so what earlier batches would have added is remembered.
    """

    def __init__(self, store: EvidenceStore, rehearsal: bool = False) -> None:
        self._store = store
        self._rehearsal = rehearsal
        self._rehearsed: dict[str, bytes] = {}
        self._rehearsed_contents: set[bytes] = set()
        self._highest: dict[str, int] = {}

    def forget(self) -> None:
        """The store was changed by somebody else: look again."""
        self._highest = {}

    def settle(self, drafts: Sequence[EvidenceDraft]) -> Settled:
        """Every draft in its order, as if those before it had been added."""
        given = [draft.evidence.evidence_id for draft in drafts if draft.has_id]
        taken = self._hashes(given)
        erased = self._store.erasure_times(given)
        unnamed = [draft for draft in drafts if not draft.has_id]
        known = self._contents([draft.content_hash for draft in unnamed])
        self._know_entities({draft.evidence.entity_id for draft in unnamed})
        settled = Settled()
        for draft in drafts:
            before = len(settled.new)
            if draft.has_id:
                self._settle_named(draft, taken, erased, settled)
            else:
                _settle_unnamed(draft, known, settled)
            known.update(new.content_hash for new in settled.new[before:])
        settled.new = self._with_names(settled.new, set(given))
        if self._rehearsal:
            self._remember(settled.new)
        return settled

    def _settle_named(
        self,
        draft: EvidenceDraft,
        taken: dict[str, bytes],
        erased: dict[str, int],
        settled: Settled,
    ) -> None:
        evidence_id = draft.evidence.evidence_id
        if evidence_id in erased:
            settled.conflicts.append((draft, f"was erased at {iso(erased[evidence_id])}"))
        elif evidence_id not in taken:
            taken[evidence_id] = draft.content_hash
            settled.new.append(draft)
            self._note_number(draft)
        elif taken[evidence_id] == draft.content_hash:
            settled.unchanged += 1
        else:
            reason = f"{evidence_id!r} is the id of an item with other content"
            settled.conflicts.append((draft, reason))

    def _note_number(self, draft: EvidenceDraft) -> None:
        """As if the entity were looked up after this item is added: then a run that goes on where
        another was interrupted gives the same ids."""
        evidence_id, entity_id = draft.evidence.evidence_id, draft.evidence.entity_id
        if entity_id in self._highest:
            number = _number(evidence_id, entity_id)
            self._highest[entity_id] = max(self._highest[entity_id], number)

    def _with_names(self, drafts: Sequence[EvidenceDraft], taken: set[str]) -> list[EvidenceDraft]:
        """Numbers go on from the highest of the entity, in order. A number is passed over where
        its id is taken by another entity's item, was erased, or is given in this batch."""
        while True:
            highest = dict(self._highest)
            named = [_named(draft, highest, taken) for draft in drafts]
            given_here = [
                after.evidence.evidence_id
                for before, after in zip(drafts, named, strict=True)
                if not before.has_id
            ]
            clashes = {*self._hashes(given_here), *self._store.erasure_times(given_here)}
            if not clashes:
                break
            taken |= clashes
        self._highest = highest
        return named

    def _hashes(self, evidence_ids: Sequence[str]) -> dict[str, bytes]:
        found = self._store.hashes(evidence_ids)
        if self._rehearsal:
            known = self._rehearsed
            found |= {name: known[name] for name in evidence_ids if name in known}
        return found

    def _contents(self, content_hashes: Sequence[bytes]) -> set[bytes]:
        """Asked anew for every batch: others may have added these rows since the last one."""
        rehearsed = self._rehearsed_contents.intersection(content_hashes)
        return self._store.known_contents(content_hashes) | rehearsed

    def _remember(self, drafts: Iterable[EvidenceDraft]) -> None:
        for draft in drafts:
            self._rehearsed[draft.evidence.evidence_id] = draft.content_hash
            self._rehearsed_contents.add(draft.content_hash)

    def _know_entities(self, entity_ids: Iterable[str]) -> None:
        """Entities of the last batch are known still: files often hold them in a row. Others are
        forgotten, so that memory does not grow with the file."""
        known = self._highest
        wanted = {name: known.get(name, 0) for name in entity_ids}
        fresh = wanted.keys() - known.keys()
        self._highest = {**known, **wanted} if self._rehearsal else wanted
        for entity_id, evidence_id in self._store.ids_of_entities(fresh):
            number = _number(evidence_id, entity_id)
            self._highest[entity_id] = max(self._highest[entity_id], number)


def _settle_unnamed(draft: EvidenceDraft, known: set[bytes], settled: Settled) -> None:
    if draft.content_hash in known:
        settled.unchanged += 1
    else:
        settled.new.append(draft)


def _named(draft: EvidenceDraft, highest: dict[str, int], taken: set[str]) -> EvidenceDraft:
    if draft.has_id:
        return draft
    entity_id = draft.evidence.entity_id
    while True:
        highest[entity_id] += 1
        name = f"{entity_id}_E{highest[entity_id]:03d}"
        if name not in taken:
            return draft.named(name)


def _number(evidence_id: str, entity_id: str) -> int:
    """The number that an id was given here, 0 where it is a name of another form."""
    prefix = f"{entity_id}_E"
    digits = evidence_id[len(prefix) :]
    if not evidence_id.startswith(prefix) or len(digits) > LONGEST_NUMBER:
        return 0
    return int(digits) if digits.isascii() and digits.isdecimal() else 0
