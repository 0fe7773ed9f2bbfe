"""Evidence from a file into the store.

A row that cannot be used is put aside with its reason, the others are taken; or, if asked to be
strict, nothing is taken from a file with such a row. Batches are added whole, each in a transaction
of its own, and what is there already is passed over: an interrupted run is mended by another.

Features of the rows of one batch.

Files that are no evidence files but look like ones: data sets, an entity a line.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import numpy as np

from lpf.errors import ConfigError, EvidenceError, InputFileError, NonFiniteError
from lpf.ingest.evidence_rows import DraftReader, EvidenceDraft, Problem, RowError
from lpf.ingest.input_files import (
    EVIDENCE_COLUMNS,
    TEXT_NAMES,
    InputFile,
    InputRow,
    meant,
    open_input,
)
from lpf.ingest.memory_rows import Rows, rows_in_memory
from lpf.ingest.rejects import RejectsFile
from lpf.ingest.settling import Settler
from lpf.reading.reader import Features, Reader, ReadRequest
from lpf.schema import Schema
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FUTURE_MICROS
from lpf.storage.values import from_micros, now_micros
from lpf.types import Float32Array


class BatchReading:
    """Reads every text once, however often its batch is settled anew: reading takes far longer
    than settling, and meanwhile others add."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._features: dict[bytes, Float32Array] = {}
        self._unreadable: dict[bytes, str] = {}

    def read(
        self, drafts: Sequence[EvidenceDraft]
    ) -> tuple[list[EvidenceDraft], Features, list[tuple[EvidenceDraft, str]]]:
        """What can be read, its features [N, width], and what cannot, with the reason."""
        known = self._features.keys() | self._unreadable.keys()
        fresh = {draft.content_hash: draft for draft in drafts if draft.content_hash not in known}
        self._read(list(fresh.values()))
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
                self._unreadable[drafts[0].content_hash] = str(error)
                return
            # Halving finds the few that cannot be read without reading all the others singly.
            middle = len(drafts) // 2
            self._read(drafts[:middle])
            self._read(drafts[middle:])
        else:
            hashes = [draft.content_hash for draft in drafts]
            self._features.update(zip(hashes, features, strict=True))


ROWS_LOOKED_AT = 20


def refuse_dataset(file: InputFile) -> None:
    """InputFileError where the first row that can be read is an entity with a list of evidence,
    rather than an item: then all of them are, and none would be usable."""
    if file.columns is not None:  # a data set is JSONL
        return
    first = next((row for row in islice(file.rows(), ROWS_LOOKED_AT) if not row.error), None)
    if first is not None and _is_entity(first):
        raise InputFileError(
            f"{file.name}, {file.unit} {first.line}: has a list 'evidence', so this is a data set, "
            "an entity a line; evidence files have an item a line. Nothing was added; 'lpf train "
            "FILE' and 'lpf evaluate FILE' take data sets."
        )


def _is_entity(row: InputRow) -> bool:
    texts = [row.values.get(name) for name in TEXT_NAMES]
    return isinstance(row.values.get("evidence"), list) and not any(texts)


Progress = Callable[[int, int | None], None]

DEFAULT_BATCH = 256
PROBLEMS_SHOWN = 20
ATTEMPTS = 50  # several processes that number items of one entity are in each other's way often


@dataclass(frozen=True)
class IngestOutcome:
    """``read`` = ``added`` + ``unchanged`` + ``rejected``. ``problems`` are the first of those
    rejected; all of them are in ``rejects_file``. ``dated_later`` of those added carry a timestamp
    that is yet to come and count from then on. ``notes`` say how the file was read, where that may
    surprise. ``meant`` are those of ``ignored_columns`` that are near the name of a field, with
    that name."""

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
    """Adds the evidence of a file. ``progress`` gets rows done and rows in all, None as long as
    nobody knows. InputFileError where the file cannot be read or, if ``strict``, some row of it
    cannot be used."""
    run = Ingestion(open_input(path), store, schema, reader, rejects_folder, batch, progress)
    return run(strict)


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
    """The same for rows that are in memory; ``name`` is what problems call them."""
    file = rows_in_memory(name, rows)
    return Ingestion(file, store, schema, reader, rejects_folder, batch, progress)(strict)


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
            raise ConfigError(f"batch: must be at least 1, got {batch}. Nothing was read.")
        self._file, self._store, self._reader = file, store, reader
        self._drafts = DraftReader(schema, needs_claim=reader.uses_claim)
        refuse_dataset(file)
        self._drafts.check_columns(file)
        self._reader_number = store.reader_number(reader.reader_id, reader.width)
        self._settler = Settler(store)
        self._rejects = RejectsFile(rejects_folder, file.name, store.erased)
        self._batch, self._progress, self._total = batch, progress, file.total
        self._read = self._added = self._unchanged = self._rejected = self._dated_later = 0
        self._problems: list[Problem] = []
        self._columns: set[str] = set(file.columns or ())

    def __call__(self, strict: bool = False) -> IngestOutcome:
        started = time.perf_counter()
        if strict:
            self._rehearse()
        try:
            for rows in _batched(self._file.rows(), self._batch):
                self._take(rows)
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
            # Where every row names its own columns, one may have a field that another mistypes.
            meant(ignored, EVIDENCE_COLUMNS - set(self._file.columns or ())),
        )

    def _rehearse(self) -> None:
        """Everything but reading and writing; InputFileError if some row cannot be used."""
        settler, read, wrong = Settler(self._store, rehearsal=True), 0, 0
        shown: list[Problem] = []
        for rows in _batched(self._file.rows(), self._batch):
            drafts, refused = self._drafted(rows)
            conflicts = settler.settle(drafts).conflicts
            problems = refused + [self._conflict(*conflict) for conflict in conflicts]
            problems.sort(key=lambda problem: problem.line)
            shown += problems[: PROBLEMS_SHOWN - len(shown)]
            read += len(rows)
            wrong += len(problems)
        self._total = read
        if wrong:
            told = "\n  ".join([*map(str, shown), *["..."][: wrong - len(shown)]])
            raise InputFileError(
                f"{self._file.name}: {wrong} of {read} rows cannot be used. Nothing was added; "
                f"mend them, or ingest without strict to put them aside:\n  {told}"
            )

    def _take(self, rows: Sequence[InputRow]) -> None:
        drafts, problems = self._drafted(rows)
        problems += self._add(drafts)
        problems.sort(key=lambda problem: problem.line)
        self._rejects.write(problems)
        self._read += len(rows)
        self._rejected += len(problems)
        self._problems += problems[: PROBLEMS_SHOWN - len(self._problems)]

    def _drafted(self, rows: Sequence[InputRow]) -> tuple[list[EvidenceDraft], list[Problem]]:
        drafts, problems = [], []
        for row in rows:
            self._columns.update(row.values)
            try:
                drafts.append(self._drafts.draft(row))
            except RowError as error:
                problems.append(self._problem(row, error.name, error.message))
        return drafts, problems

    def _add(self, drafts: Sequence[EvidenceDraft]) -> list[Problem]:
        """Settles and adds; looks again where another process was quicker to take an id, or to
        add the same rows."""
        reading = BatchReading(self._reader)
        for attempt in range(1, ATTEMPTS + 1):
            settled = self._settler.settle(drafts)
            new, features, unreadable = reading.read(settled.new)
            try:
                if new:
                    self._store.add([d.as_new() for d in new], features, self._reader_number)
            except EvidenceError as error:
                if attempt == ATTEMPTS or isinstance(error, NonFiniteError):
                    raise
                self._settler.forget()
                continue
            self._added += len(new)
            self._dated_later += _dated_later(new)
            self._unchanged += settled.unchanged
            conflicts = [self._conflict(*conflict) for conflict in settled.conflicts]
            return conflicts + [self._problem(d.row, "text_content", why) for d, why in unreadable]
        raise AssertionError("the last attempt returns or raises")

    def _conflict(self, draft: EvidenceDraft, reason: str) -> Problem:
        return self._problem(draft.row, "evidence_id", reason)

    def _problem(self, row: InputRow, name: str | None, error: str) -> Problem:
        values = None if row.error else dict(row.values)
        return Problem(self._file.name, row.line, name, error, values, self._file.unit)


def _dated_later(drafts: Iterable[EvidenceDraft]) -> int:
    """How many are of a time that is yet to come, beyond what clocks differ by."""
    latest = from_micros(now_micros() + FUTURE_MICROS)
    moments = (draft.evidence.timestamp for draft in drafts)
    return sum(moment is not None and moment > latest for moment in moments)


def _batched(rows: Iterable[InputRow], size: int) -> Iterator[list[InputRow]]:
    rows = iter(rows)
    while batch := list(islice(rows, size)):
        yield batch
