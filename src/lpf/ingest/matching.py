"""Compare rows with the store: new, changed, unchanged, or in conflict with an erased item."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from lpf.ingest.evidence_drafts import EvidenceDraft
from lpf.storage.evidence import DamagedItem, EvidenceStore
from lpf.storage.values import iso
from lpf.types import Evidence

Conflict = tuple[EvidenceDraft, str]

LONGEST_NUMBER = 9  # digits; a longer number was not generated here


@dataclass
class BatchMatch:
    """The drafts of a batch, compared with the store. All of ``new`` have IDs; ``changed`` are new
    versions of stored items; a conflict is a draft with the reason."""

    new: list[EvidenceDraft] = field(default_factory=list)
    changed: list[EvidenceDraft] = field(default_factory=list)
    unchanged: int = 0
    conflicts: list[Conflict] = field(default_factory=list)


class StoreMatcher:
    """Compares one batch after another with the store.

    In a ``dry_run`` nothing is written to the store, so the items that earlier batches would have
    added are remembered here.
    """

    def __init__(self, store: EvidenceStore, dry_run: bool = False) -> None:
        self._store = store
        self._dry_run = dry_run
        self._dry_run_hashes: dict[str, bytes] = {}
        self._dry_run_contents: set[bytes] = set()
        self._highest: dict[str, int] = {}
        self._given: dict[str, bytes] = {}

    def without_repeated(
        self, drafts: Sequence[EvidenceDraft]
    ) -> tuple[list[EvidenceDraft], list[Conflict]]:
        """Separate drafts whose ID an earlier draft of this run has with different content: which
        of the two is right is unknown, and ingesting again must not swap them. Call it once per
        batch."""
        kept: list[EvidenceDraft] = []
        conflicts: list[Conflict] = []
        for draft in drafts:
            evidence_id = draft.evidence.evidence_id
            if draft.has_id and self._given.setdefault(evidence_id, draft.content_hash) != (
                draft.content_hash
            ):
                reason = f"{evidence_id!r} is given twice, with different content"
                conflicts.append((draft, reason))
            else:
                kept.append(draft)
        return kept, conflicts

    def refresh(self) -> None:
        """Another process has changed the store: look up everything again."""
        self._highest = {}

    def match(self, drafts: Sequence[EvidenceDraft]) -> BatchMatch:
        """Compare each draft, in order, as if those before it had been added."""
        given = [draft.evidence.evidence_id for draft in drafts if draft.has_id]
        taken = self._hashes(given)
        erased = self._store.erasure_times(given)
        without_id = [draft for draft in drafts if not draft.has_id]
        known = self._contents([draft.content_hash for draft in without_id])
        self._look_up_entities({draft.evidence.entity_id for draft in without_id})
        batch = BatchMatch()
        for draft in drafts:
            before = len(batch.new)
            if draft.has_id:
                self._match_id(draft, taken, erased, batch)
            elif draft.content_hash in known:
                batch.unchanged += 1
            else:
                batch.new.append(draft)
            known.update(new.content_hash for new in batch.new[before:])
        self._separate_others(batch)
        batch.new = self._with_ids(batch.new, set(given))
        if self._dry_run:
            self._remember([*batch.new, *batch.changed])
        return batch

    def _match_id(
        self,
        draft: EvidenceDraft,
        taken: dict[str, bytes],
        erased: dict[str, int],
        batch: BatchMatch,
    ) -> None:
        evidence_id = draft.evidence.evidence_id
        if evidence_id in erased:
            batch.conflicts.append((draft, f"was erased at {iso(erased[evidence_id])}"))
        elif evidence_id not in taken:
            taken[evidence_id] = draft.content_hash
            batch.new.append(draft)
            self._update_highest(draft)
        elif taken[evidence_id] == draft.content_hash:
            batch.unchanged += 1
        else:
            batch.changed.append(draft)

    def _separate_others(self, batch: BatchMatch) -> None:
        """A correction is about the same entity and predicate. Otherwise the ID is likely to come
        from another file that also numbers its items from 1. What a damaged item is about is
        unknown; any row with its ID replaces it."""
        damaged: list[DamagedItem] = []
        names = [draft.evidence.evidence_id for draft in batch.changed]
        stored = self._store.get_many(names, damaged)
        kept: dict[str, EvidenceDraft] = {}
        for draft in batch.changed:
            new, old = draft.evidence, stored.get(draft.evidence.evidence_id)
            if old is not None and _subject(old.evidence) != _subject(new):
                about = " and ".join(map(repr, _subject(old.evidence)))
                reason = f"{new.evidence_id!r} is the ID of an item about {about}"
                batch.conflicts.append((draft, reason))
            elif new.evidence_id in kept:  # the same row again
                batch.unchanged += 1
            else:
                kept[new.evidence_id] = draft
        batch.changed = list(kept.values())

    def _update_highest(self, draft: EvidenceDraft) -> None:
        """As if the entity were looked up after this item was added, so that a run that continues
        an interrupted one generates the same IDs."""
        evidence_id, entity_id = draft.evidence.evidence_id, draft.evidence.entity_id
        if entity_id in self._highest:
            number = _number(evidence_id, entity_id)
            self._highest[entity_id] = max(self._highest[entity_id], number)

    def _with_ids(self, drafts: Sequence[EvidenceDraft], taken: set[str]) -> list[EvidenceDraft]:
        """Generate missing IDs with the next numbers of each entity. A number is skipped if its ID
        belongs to another entity's item, was erased, or is given in this batch."""
        while True:
            highest = dict(self._highest)
            numbered = [_with_next_id(draft, highest, taken) for draft in drafts]
            generated = [draft.evidence.evidence_id for draft in numbered if not draft.has_id]
            clashes = {*self._hashes(generated), *self._store.erasure_times(generated)}
            if not clashes:
                break
            taken |= clashes
        self._highest = highest
        return numbered

    def _hashes(self, evidence_ids: Sequence[str]) -> dict[str, bytes]:
        hashes = self._store.hashes(evidence_ids)
        if self._dry_run:
            known = self._dry_run_hashes
            hashes |= {name: known[name] for name in evidence_ids if name in known}
        return hashes

    def _contents(self, content_hashes: Sequence[bytes]) -> set[bytes]:
        """Looked up for each batch: others may have added these rows since the last one."""
        remembered = self._dry_run_contents.intersection(content_hashes)
        return self._store.known_contents(content_hashes) | remembered

    def _remember(self, drafts: Iterable[EvidenceDraft]) -> None:
        for draft in drafts:
            self._dry_run_hashes[draft.evidence.evidence_id] = draft.content_hash
            self._dry_run_contents.add(draft.content_hash)

    def _look_up_entities(self, entity_ids: Iterable[str]) -> None:
        """Set the highest number of each entity. Only entities of the last batch are remembered, so
        that memory does not grow with the file."""
        known = self._highest
        wanted = {name: known.get(name, 0) for name in entity_ids}
        new = wanted.keys() - known.keys()
        self._highest = {**known, **wanted} if self._dry_run else wanted
        for entity_id, evidence_id in self._store.ids_of_entities(new):
            number = _number(evidence_id, entity_id)
            self._highest[entity_id] = max(self._highest[entity_id], number)


def _subject(evidence: Evidence) -> tuple[str, str]:
    return evidence.entity_id, evidence.predicate


def _with_next_id(draft: EvidenceDraft, highest: dict[str, int], taken: set[str]) -> EvidenceDraft:
    if draft.has_id:
        return draft
    entity_id = draft.evidence.entity_id
    while True:
        highest[entity_id] += 1
        evidence_id = f"{entity_id}_E{highest[entity_id]:03d}"
        if evidence_id not in taken:
            return draft.with_id(evidence_id)


def _number(evidence_id: str, entity_id: str) -> int:
    """The number in a generated ID, or 0 if the ID has another form."""
    prefix = f"{entity_id}_E"
    digits = evidence_id[len(prefix) :]
    if not evidence_id.startswith(prefix) or len(digits) > LONGEST_NUMBER:
        return 0
    return int(digits) if digits.isascii() and digits.isdecimal() else 0
