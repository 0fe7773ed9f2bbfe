"""Add evidence from a file to the store.

An invalid row is written to a rejects file with the reason, and the others are added; in strict
mode nothing is added from a file with an invalid row. Items already in the store are skipped, and
those whose content has changed get a new version. Each batch is added in one transaction and
updated in another, so an interrupted run is completed by running it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from lpf.errors import (
    ConfigError,
    EvidenceError,
    InputFileError,
    NonFiniteError,
    UnknownEvidenceError,
)
from lpf.ingest.cell_values import CellReader
from lpf.ingest.dataset_rows import as_evidence
from lpf.ingest.evidence_drafts import DraftReader, EvidenceDraft
from lpf.ingest.input_files import FileOptions, Rows, open_input, rows_in_memory
from lpf.ingest.input_rows import (
    CLAIM_NAMES,
    EVIDENCE_COLUMNS,
    InputFile,
    InputRow,
    similar_fields,
)
from lpf.ingest.matching import StoreMatcher
from lpf.ingest.new_entities import NewEntities
from lpf.ingest.rejects import RejectsFile
from lpf.ingest.row_fields import Problem, RowError
from lpf.reading.reader import Features, Reader, ReadRequest
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FUTURE_MICROS
from lpf.storage.values import from_micros, now_micros, to_micros
from lpf.types import Float32Array

Progress = Callable[[int, int | None], None]
# A reader, or what chooses one: it is called with True if the first rows have claims.
ReaderChoice = Reader | Callable[[bool], Reader]

DEFAULT_BATCH = 256
PROBLEMS_SHOWN = 20
REPLACED_SHOWN = 5
CLAIMS_INSPECTED = 1000  # rows in which to look for claims
ATTEMPTS = 50  # processes that number items of the same entity conflict often


@dataclass(frozen=True)
class IngestOutcome:
    """Counts and warnings of one ingestion.

    ``read`` = ``added`` + ``updated`` + ``unchanged`` + ``rejected``. ``problems`` are the first
    rejected rows; all of them are in ``rejects_file``. ``dated_later`` counts the added and
    updated items with a timestamp in the future, which are used from then on. ``cut`` counts those
    whose text is longer than the reader reads, so that its end does not count. ``read_as`` says
    what was assumed about the file, ``notes`` what else a user should know. ``meant`` maps those of
    ``ignored_columns`` that look like a mistyped field to the name of that field.
    """

    read: int
    added: int
    unchanged: int
    rejected: int
    rejects_file: Path | None
    ignored_columns: tuple[str, ...]
    seconds: float
    problems: tuple[Problem, ...]
    dated_later: int = 0
    notes: tuple[str, ...] = ()
    meant: Mapping[str, str] = field(default_factory=dict)
    cut: int = 0
    updated: int = 0
    read_as: tuple[str, ...] = ()


def ingest(
    path: str | Path,
    store: EvidenceStore,
    schema: Schema,
    reader: ReaderChoice,
    *,
    rejects_folder: str | Path,
    strict: bool = False,
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
    options: FileOptions | None = None,
    claim: str | None = None,
) -> IngestOutcome:
    """Add the evidence in a file, or the items of a data set. ``progress`` is called with the rows
    done and the total, which is None while unknown. ``claim`` is that of rows without one, if the
    reader reads claims. InputFileError if the file cannot be read or, if ``strict``, if any row is
    invalid."""
    file = open_input(path, options)
    run = Ingestion(file, store, schema, reader, rejects_folder, batch, progress, options, claim)
    return run.run(strict)


def ingest_rows(
    rows: Rows,
    store: EvidenceStore,
    schema: Schema,
    reader: ReaderChoice,
    *,
    rejects_folder: str | Path,
    name: str = "rows",
    strict: bool = False,
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
    options: FileOptions | None = None,
    claim: str | None = None,
) -> IngestOutcome:
    """Like ``ingest``, for rows in memory. Problems show ``name`` in place of the file name."""
    file = rows_in_memory(name, rows, options)
    run = Ingestion(file, store, schema, reader, rejects_folder, batch, progress, options, claim)
    return run.run(strict)


class Ingestion:
    """One run over one file."""

    def __init__(
        self,
        file: InputFile,
        store: EvidenceStore,
        schema: Schema,
        reader: ReaderChoice,
        rejects_folder: str | Path,
        batch: int,
        progress: Progress | None,
        options: FileOptions | None = None,
        claim: str | None = None,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"must be at least 1, got {batch}. Nothing was read.", field="batch")
        options = options or FileOptions()
        file = as_evidence(file, schema, options.predicate)
        cells = CellReader.of(file, options.date_format)
        self._drafts = DraftReader(
            schema,
            cells=cells,
            unit=file.unit,
            predicate=options.predicate,
        )
        self._drafts.check_columns(file)
        reader = reader(claim is not None or _has_claims(file)) if callable(reader) else reader
        if reader.uses_claim:
            self._drafts.default_claim = claim
        self._file, self._store, self._reader = file, store, reader
        self._reader_number = store.reader_number(reader.reader_id, reader.width)
        self._matcher = StoreMatcher(store)
        self._entities = NewEntities(store.database)
        self._rejects = RejectsFile(rejects_folder, file.name, store.erasure_times)
        self._batch, self._progress, self._total = batch, progress, file.total
        self._read = self._added = self._updated = self._unchanged = self._rejected = 0
        self._dated_later = self._cut = self._edits = 0
        self._claims_unread = self._claims_filled = 0
        self._first_edit = ""
        self._started = now_micros()
        self._problems: list[Problem] = []
        self._replaced: list[str] = []
        self._columns: set[str] = set(file.columns or ())

    def run(self, strict: bool) -> IngestOutcome:
        started = time.perf_counter()
        if strict:
            self._check_all_rows()
        try:
            for rows in _batched(self._file.rows(), self._batch):
                self._add_batch(rows)
                if self._progress is not None:
                    self._progress(self._read, self._total)
        finally:
            rejects_file = self._rejects.close()
        ignored = tuple(sorted(self._columns - EVIDENCE_COLUMNS))
        return IngestOutcome(
            self._read,
            self._added,
            self._unchanged,
            self._rejected,
            rejects_file,
            ignored,
            time.perf_counter() - started,
            tuple(self._problems),
            self._dated_later,
            self._notes(),
            # In JSONL every row has its own columns: one may have a field that another mistypes.
            similar_fields(ignored, EVIDENCE_COLUMNS - set(self._file.columns or ())),
            self._cut,
            self._updated,
            (*self._file.read_as, *self._drafts.cells.notes),
        )

    def _notes(self) -> tuple[str, ...]:
        notes = [*self._file.notes, *self._about_updates(), *self._about_claims()]
        notes += self._entities.notes()
        if self._edits:
            notes.append(
                f"{self._edits:,} of the new items may be corrections: entity, source and date are "
                f"those of an item that was there before (first: {self._first_edit}). They have no "
                "evidence_id, so they were added as new items, and both count. Erase the outdated "
                "ones (lpf evidence erase ID); to correct an item, put its ID into a column "
                "evidence_id, or use lpf evidence edit ID."
            )
        return tuple(notes)

    def _about_updates(self) -> list[str]:
        """An ID may belong to another item by chance: generated IDs look like those of files."""
        number, shown = self._updated, ", ".join(self._replaced)
        if not number:
            return []
        more = ", ..." if number > len(self._replaced) else ""
        if number == 1:
            return [f"1 item replaced by a new version: {shown}"]
        return [f"{number:,} items replaced by new versions: {shown}{more}"]

    def _about_claims(self) -> list[str]:
        if self._claims_filled:
            items = "1 item" if self._claims_filled == 1 else f"{self._claims_filled:,} items"
            return [
                f"{items} read as evidence on {self._drafts.default_claim!r}, the description of "
                "the predicate, for lack of a claim."
            ]
        number = self._claims_unread
        if not number:
            return []
        items = "1 item has a claim" if number == 1 else f"{number:,} items have claims"
        return [
            f"{items} that will not be read: this workspace reads texts alone. Train again, and "
            "claims will be read, unless with_claim = false is under [reader] in lpf.toml."
        ]

    def _check_all_rows(self) -> None:
        """A dry run without computing features; InputFileError if any row is invalid."""
        matcher, read, invalid = StoreMatcher(self._store, dry_run=True), 0, 0
        shown: list[Problem] = []
        for rows in _batched(self._file.rows(), self._batch):
            drafts, problems = self._draft(rows)
            drafts, repeated = matcher.without_repeated(drafts)
            conflicts = [*repeated, *matcher.match(drafts).conflicts]
            problems += [self._conflict(*conflict) for conflict in conflicts]
            problems.sort(key=lambda problem: problem.line)
            shown += problems[: PROBLEMS_SHOWN - len(shown)]
            read += len(rows)
            invalid += len(problems)
        self._total = read
        if invalid:
            lines = "\n  ".join([*map(str, shown), *["..."][: invalid - len(shown)]])
            raise InputFileError(
                f"{self._file.name}: {invalid} of {read} rows are invalid. Nothing was added; fix "
                f"them, or ingest without strict to skip them:\n  {lines}"
            )

    def _add_batch(self, rows: Sequence[InputRow]) -> None:
        drafts, problems = self._draft(rows)
        drafts, repeated = self._matcher.without_repeated(drafts)
        problems += [self._conflict(*conflict) for conflict in repeated]
        problems += self._add(drafts)
        problems.sort(key=lambda problem: problem.line)
        self._rejects.write(problems)
        self._read += len(rows)
        self._rejected += len(problems)
        self._problems += problems[: PROBLEMS_SHOWN - len(self._problems)]

    def _draft(self, rows: Sequence[InputRow]) -> tuple[list[EvidenceDraft], list[Problem]]:
        drafts, problems = [], []
        for row in rows:
            self._columns.update(row.values)
            try:
                drafts.append(self._drafts.draft(row))
            except RowError as error:
                (name, message), *more = error.problems
                problems.append(self._problem(row, name, message, tuple(more)))
        return drafts, problems

    def _add(self, drafts: Sequence[EvidenceDraft]) -> list[Problem]:
        """Compare with the store and add what is new; start again if another process has taken an
        ID or added the same rows in the meantime."""
        features_of = BatchFeatures(self._reader)
        for attempt in range(1, ATTEMPTS + 1):
            match = self._matcher.match(drafts)
            new, features, unreadable = features_of.read(match.new)
            edits = self._likely_edits(new)
            self._entities.look_at(draft.evidence.entity_id for draft in new)
            try:
                if new:
                    self._store.add([d.as_new() for d in new], features, self._reader_number)
            except EvidenceError as error:
                self._before_next(attempt, error)
                continue
            self._added += len(new)
            self._count(new)
            self._unchanged += match.unchanged
            self._edits += len(edits)
            self._first_edit = self._first_edit or next(iter(edits), "")
            conflicts = [self._conflict(*conflict) for conflict in match.conflicts]
            problems = [self._problem(d.row, "text_content", why) for d, why in unreadable]
            return conflicts + problems + self._update(match.changed, features_of)
        raise AssertionError("the last attempt returns or raises")

    def _update(self, drafts: Sequence[EvidenceDraft], features_of: BatchFeatures) -> list[Problem]:
        """Replace stored items by new versions; start again if another process has replaced or
        erased one in the meantime."""
        if not drafts:
            return []
        for attempt in range(1, ATTEMPTS + 1):
            match = self._matcher.match(drafts)
            changed, features, unreadable = features_of.read(match.changed)
            try:
                if changed:
                    new = [draft.as_new() for draft in changed]
                    self._store.replace(new, features, self._reader_number)
            except (EvidenceError, UnknownEvidenceError) as error:
                self._before_next(attempt, error)
                continue
            self._updated += len(changed)
            shown = changed[: REPLACED_SHOWN - len(self._replaced)]
            self._replaced += [draft.evidence.evidence_id for draft in shown]
            self._count(changed)
            self._unchanged += match.unchanged
            conflicts = [self._conflict(*conflict) for conflict in match.conflicts]
            return conflicts + [self._problem(d.row, "text_content", why) for d, why in unreadable]
        raise AssertionError("the last attempt returns or raises")

    def _count(self, written: Sequence[EvidenceDraft]) -> None:
        """What to tell the user about items that were added or updated."""
        self._dated_later += _dated_later(written)
        self._cut += self._reader.count_cut([draft.evidence.text_content for draft in written])
        if not self._reader.uses_claim:
            self._claims_unread += sum(d.evidence.claim is not None for d in written)
        elif (claim := self._drafts.default_claim) is not None:
            self._claims_filled += sum(d.evidence.claim == claim for d in written)

    def _before_next(self, attempt: int, error: Exception) -> None:
        if attempt == ATTEMPTS or isinstance(error, NonFiniteError):
            raise error
        self._matcher.refresh()

    def _likely_edits(self, new: Sequence[EvidenceDraft]) -> list[str]:
        """New items without an ID that may be corrections of items in the store: those with a date
        and the same source, which may be unknown."""
        dated = [
            ((e.entity_id, e.predicate, e.source, to_micros(e.timestamp)), draft)
            for draft in new
            if not draft.has_id and (e := draft.evidence).timestamp is not None
        ]
        if not dated:
            return []
        stored = self._store.dated_items({key[0] for key, _ in dated}, self._started)
        return [
            f"{self._file.unit} {draft.row.line}, perhaps {stored[key]}"
            for key, draft in dated
            if key in stored
        ]

    def _conflict(self, draft: EvidenceDraft, reason: str) -> Problem:
        return self._problem(draft.row, "evidence_id", reason)

    def _problem(
        self,
        row: InputRow,
        name: str | None,
        error: str,
        more: tuple[tuple[str | None, str], ...] = (),
    ) -> Problem:
        values = None if row.error else dict(row.values)
        return Problem(self._file.name, row.line, name, error, values, self._file.unit, more)


class BatchFeatures:
    """Reads every text of a batch once, however often the batch is compared with the store again:
    reading is slow, and other processes may change the store meanwhile."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._features: dict[bytes, Float32Array] = {}
        self._unreadable: dict[bytes, str] = {}

    def read(
        self, drafts: Sequence[EvidenceDraft]
    ) -> tuple[list[EvidenceDraft], Features, list[tuple[EvidenceDraft, str]]]:
        """The drafts that can be read, their features [N, width], and the drafts that cannot be
        read, with the reason."""
        known = self._features.keys() | self._unreadable.keys()
        new = {draft.content_hash: draft for draft in drafts if draft.content_hash not in known}
        self._read(list(new.values()))
        readable = [draft for draft in drafts if draft.content_hash in self._features]
        reasons = self._unreadable
        unreadable = [(d, reasons[d.content_hash]) for d in drafts if d.content_hash in reasons]
        features = np.empty((len(readable), self._reader.width), np.float32)
        for number, draft in enumerate(readable):
            features[number] = self._features[draft.content_hash]
        return readable, features, unreadable

    def _read(self, drafts: Sequence[EvidenceDraft]) -> None:
        if not drafts:
            return
        requests = [ReadRequest(d.evidence.text_content, d.evidence.claim) for d in drafts]
        try:
            features = self._reader.read_many(requests)
        except EvidenceError as error:
            if len(drafts) == 1:
                self._unreadable[drafts[0].content_hash] = error.message.rstrip(".")
                return
            # Bisect: finds the few unreadable texts without reading all others one by one.
            middle = len(drafts) // 2
            self._read(drafts[:middle])
            self._read(drafts[middle:])
        else:
            hashes = [draft.content_hash for draft in drafts]
            self._features.update(zip(hashes, features, strict=True))


def _has_claims(file: InputFile) -> bool:
    if file.columns is not None and not set(CLAIM_NAMES) & set(file.columns):
        return False
    rows = islice(file.rows(), CLAIMS_INSPECTED)
    return any(
        not row.error and any(row.values.get(name) not in (None, "") for name in CLAIM_NAMES)
        for row in rows
    )


def _dated_later(drafts: Iterable[EvidenceDraft]) -> int:
    """The number of items dated in the future, with some tolerance for differing clocks."""
    latest = from_micros(now_micros() + FUTURE_MICROS)
    moments = (draft.evidence.timestamp for draft in drafts)
    return sum(moment is not None and moment > latest for moment in moments)


def _batched(rows: Iterable[InputRow], size: int) -> Iterator[list[InputRow]]:
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
