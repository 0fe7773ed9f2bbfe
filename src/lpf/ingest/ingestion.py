"""Add evidence from a file to the store.

An invalid row is written to a rejects file with the reason, and the others are added; in strict
mode nothing is added from a file with an invalid row. Each batch is added in one transaction, and
items already in the store are skipped, so an interrupted run is completed by running it again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from lpf.errors import ConfigError, EvidenceError, InputFileError, NonFiniteError
from lpf.ingest.evidence_drafts import DraftReader, EvidenceDraft
from lpf.ingest.input_files import Rows, open_input, rows_in_memory
from lpf.ingest.input_rows import (
    EVIDENCE_COLUMNS,
    TEXT_NAMES,
    InputFile,
    InputRow,
    similar_fields,
)
from lpf.ingest.matching import StoreMatcher
from lpf.ingest.rejects import RejectsFile
from lpf.ingest.row_fields import Problem, RowError
from lpf.reading.reader import Features, Reader, ReadRequest
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FUTURE_MICROS
from lpf.storage.values import from_micros, now_micros
from lpf.types import Float32Array

Progress = Callable[[int, int | None], None]

DEFAULT_BATCH = 256
PROBLEMS_SHOWN = 20
ROWS_INSPECTED = 20  # to find out if a file is a data set
ATTEMPTS = 50  # processes that number items of the same entity conflict often


@dataclass(frozen=True)
class IngestOutcome:
    """Counts and warnings of one ingestion.

    ``read`` = ``added`` + ``unchanged`` + ``rejected``. ``problems`` are the first rejected rows;
    all of them are in ``rejects_file``. ``dated_later`` counts the added items with a timestamp in
    the future, which are used from then on. ``notes`` say how the file was read if that may be
    unexpected. ``meant`` maps those of ``ignored_columns`` that look like a mistyped field to the
    name of that field.
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


def ingest(
    path: str | Path,
    store: EvidenceStore,
    schema: Schema,
    reader: Reader,
    *,
    rejects_folder: str | Path,
    strict: bool = False,
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
) -> IngestOutcome:
    """Add the evidence in a file. ``progress`` is called with the rows done and the total, which is
    None while unknown. InputFileError if the file cannot be read or, if ``strict``, if any row is
    invalid."""
    file = open_input(path)
    return Ingestion(file, store, schema, reader, rejects_folder, batch, progress).run(strict)


def ingest_rows(
    rows: Rows,
    store: EvidenceStore,
    schema: Schema,
    reader: Reader,
    *,
    rejects_folder: str | Path,
    name: str = "rows",
    strict: bool = False,
    batch: int = DEFAULT_BATCH,
    progress: Progress | None = None,
) -> IngestOutcome:
    """Like ``ingest``, for rows in memory. Problems show ``name`` in place of the file name."""
    file = rows_in_memory(name, rows)
    return Ingestion(file, store, schema, reader, rejects_folder, batch, progress).run(strict)


class Ingestion:
    """One run over one file."""

    def __init__(
        self,
        file: InputFile,
        store: EvidenceStore,
        schema: Schema,
        reader: Reader,
        rejects_folder: str | Path,
        batch: int,
        progress: Progress | None,
    ) -> None:
        if batch < 1:
            raise ConfigError(f"must be at least 1, got {batch}. Nothing was read.", field="batch")
        self._file, self._store, self._reader = file, store, reader
        self._drafts = DraftReader(schema, needs_claim=reader.uses_claim)
        _reject_dataset(file)
        self._drafts.check_columns(file)
        self._reader_number = store.reader_number(reader.reader_id, reader.width)
        self._matcher = StoreMatcher(store)
        self._rejects = RejectsFile(rejects_folder, file.name, store.erasure_times)
        self._batch, self._progress, self._total = batch, progress, file.total
        self._read = self._added = self._unchanged = self._rejected = self._dated_later = 0
        self._problems: list[Problem] = []
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
            self._file.notes,
            # In JSONL every row has its own columns: one may have a field that another mistypes.
            similar_fields(ignored, EVIDENCE_COLUMNS - set(self._file.columns or ())),
        )

    def _check_all_rows(self) -> None:
        """A dry run without computing features; InputFileError if any row is invalid."""
        matcher, read, invalid = StoreMatcher(self._store, dry_run=True), 0, 0
        shown: list[Problem] = []
        for rows in _batched(self._file.rows(), self._batch):
            drafts, problems = self._draft(rows)
            conflicts = matcher.match(drafts).conflicts
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
                problems.append(self._problem(row, error.field, error.message))
        return drafts, problems

    def _add(self, drafts: Sequence[EvidenceDraft]) -> list[Problem]:
        """Compare with the store and add what is new; start again if another process has taken an
        ID or added the same rows in the meantime."""
        features_of = BatchFeatures(self._reader)
        for attempt in range(1, ATTEMPTS + 1):
            match = self._matcher.match(drafts)
            new, features, unreadable = features_of.read(match.new)
            try:
                if new:
                    self._store.add([d.as_new() for d in new], features, self._reader_number)
            except EvidenceError as error:
                if attempt == ATTEMPTS or isinstance(error, NonFiniteError):
                    raise
                self._matcher.refresh()
                continue
            self._added += len(new)
            self._dated_later += _dated_later(new)
            self._unchanged += match.unchanged
            conflicts = [self._conflict(*conflict) for conflict in match.conflicts]
            return conflicts + [self._problem(d.row, "text_content", why) for d, why in unreadable]
        raise AssertionError("the last attempt returns or raises")

    def _conflict(self, draft: EvidenceDraft, reason: str) -> Problem:
        return self._problem(draft.row, "evidence_id", reason)

    def _problem(self, row: InputRow, name: str | None, error: str) -> Problem:
        values = None if row.error else dict(row.values)
        return Problem(self._file.name, row.line, name, error, values, self._file.unit)


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


def _reject_dataset(file: InputFile) -> None:
    """InputFileError if the first valid row is an entity with a list of evidence, as in a data
    set: then every row would be rejected."""
    if file.columns is not None:  # a data set is JSONL
        return
    first = next((row for row in islice(file.rows(), ROWS_INSPECTED) if not row.error), None)
    if first is not None and _is_entity(first):
        raise InputFileError(
            f"{file.name}, {file.unit} {first.line}: has a list 'evidence', so this is a data set "
            "with one entity per line; an evidence file has one item per line. Nothing was added; "
            "use 'lpf train FILE' or 'lpf evaluate FILE' for data sets."
        )


def _is_entity(row: InputRow) -> bool:
    texts = [row.values.get(name) for name in TEXT_NAMES]
    return isinstance(row.values.get("evidence"), list) and not any(texts)


def _dated_later(drafts: Iterable[EvidenceDraft]) -> int:
    """The number of items dated in the future, with some tolerance for differing clocks."""
    latest = from_micros(now_micros() + FUTURE_MICROS)
    moments = (draft.evidence.timestamp for draft in drafts)
    return sum(moment is not None and moment > latest for moment in moments)


def _batched(rows: Iterable[InputRow], size: int) -> Iterator[list[InputRow]]:
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
