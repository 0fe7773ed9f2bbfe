"""The façade that the command line and the service call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from threading import RLock

from lpf.engine import Background, Engine
from lpf.errors import ConfigError, WorkspaceError
from lpf.index import EvidenceIndex, VectorIndex, forget_rows, pair_text_part
from lpf.ingest import Erasure, IngestOutcome, begin_erasure, finish_erasure, ingest
from lpf.ledger.keys import load_private
from lpf.ledger.reading import LedgerReader
from lpf.ledger.writer import Ledger
from lpf.model.artefact import Artefact
from lpf.orchestrator import AuditMode, Orchestrator, Parts, Replay, replay, replay_deep
from lpf.reading import Reader, open_reader
from lpf.results import QueryResult
from lpf.schema import Schema
from lpf.storage.cache import Cache, open_cache
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FactStore
from lpf.storage.migrations import migrate
from lpf.types import QueryOptions
from lpf.workspace.circuits import learn_circuit, read_circuit
from lpf.workspace.creation import create_workspace
from lpf.workspace.models import Models
from lpf.workspace.parts import part
from lpf.workspace.settings import FILE_NAME, Settings, read_settings

# How many questions are answered, and recorded, in one go.
BATCH = 1000
INGEST_BATCH = 256
Progress = Callable[[int, int], None]


class Workspace:
    """One folder's parts, each opened when first used. Close it, or use it in a ``with``."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.folder
        self.schema = settings.schema
        self.making = RLock()

    @classmethod
    def create(
        cls,
        folder: Path | str,
        schema: Schema,
        *,
        reader: str = "minilm",
        store_url: str | None = None,
    ) -> Workspace:
        """Makes a workspace with a blank store and a fresh signing key. WorkspaceError where the
        folder is one already."""
        create_workspace(Path(folder), schema, reader, store_url)
        return cls.open(folder)

    @classmethod
    def open(cls, folder: Path | str | None = None) -> Workspace:
        """The workspace in ``folder``, or the nearest one upwards from here."""
        return cls(read_settings(find_folder(folder)))

    @part
    def database(self) -> Database:
        """The store, brought to the newest version. A file that is not there is not made anew:
        an empty store in place of a lost one would look like an answer."""
        store = self.settings.store
        database = Database(self.settings.store_address, busy_seconds=store.busy_seconds)
        if database.path is not None and not database.path.exists():
            raise WorkspaceError(
                f"{database.path}: the store is not there. Nothing was made in its place; put it "
                "back, from a backup if need be, or begin anew with 'lpf init' in another folder."
            )
        migrate(database)
        return database

    @part
    def evidence(self) -> EvidenceStore:
        return EvidenceStore(self.database)

    @part
    def facts(self) -> FactStore:
        return FactStore(self.database, self.schema)

    @part
    def cache(self) -> Cache:
        settings = self.settings.cache
        return open_cache(self.settings.cache_url, ttl_seconds=settings.ttl_seconds)

    @part
    def reader(self) -> Reader:
        """Opened only where a text must be read: it takes half a second."""
        settings = self.settings.reader
        return open_reader(settings.name, with_claim=settings.with_claim)

    @part
    def index(self) -> EvidenceIndex:
        reader_id, width = self._reader_id_and_width
        return EvidenceIndex(
            self.evidence,
            reader_id,
            width,
            lambda: self.reader,
            self.settings.ranking,
            copy_similarity=self.settings.index.copy_similarity,
            text_part=pair_text_part(width) if self.settings.reader.with_claim else None,
        )

    @part
    def vectors(self) -> VectorIndex:
        """Search by text across entities."""
        return VectorIndex(self.index.source, self.folder / "vectors", self.settings.vectors)

    @part
    def models(self) -> Models:
        return Models(self.folder / "models")

    @part
    def model(self) -> Artefact | None:
        """The model in use, if there is one yet."""
        active = self.models.active()
        return None if active is None else self.models.load(active)

    @part
    def background(self) -> Background:
        return Background(self.schema, read_circuit(self.folder))

    @part
    def engine(self) -> Engine | None:
        if self.model is None:
            return None
        return Engine(self.model.runtime(), self.schema, self.background.circuit)

    @part
    def ledger(self) -> Ledger:
        """The ledger, open for writing; signed where the private key is here."""
        key_file = self.settings.key_file
        key = load_private(key_file) if key_file.exists() else None
        seconds = self.settings.ledger.checkpoint_seconds
        return Ledger(self.database, key, checkpoint_seconds=seconds)

    @part
    def records(self) -> LedgerReader:
        """The ledger, for reading."""
        return LedgerReader(self.database)

    @part
    def orchestrator(self) -> Orchestrator:
        return Orchestrator(
            Parts(
                self.schema,
                self.facts,
                self.index,
                self.background,
                self.engine,
                self.cache,
                self._reader_id_and_width[0],
                self.ledger,
                self.settings.facts,
            )
        )

    def query(
        self,
        entity_id: str,
        predicate: str | None = None,
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
    ) -> QueryResult:
        """One question; the predicate may be left out where the schema has only one."""
        return self.orchestrator.query(
            entity_id, self.predicate(predicate), options or self.settings.query, audit
        )

    def query_many(
        self,
        questions: Sequence[tuple[str, str]],
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
        progress: Progress | None = None,
    ) -> list[QueryResult]:
        """Many questions (entity, predicate), a thousand at a time."""
        results: list[QueryResult] = []
        for start in range(0, len(questions), BATCH):
            chunk = questions[start : start + BATCH]
            results += self.orchestrator.query_many(chunk, options or self.settings.query, audit)
            if progress is not None:
                progress(len(results), len(questions))
        return results

    def predicate(self, name: str | None) -> str:
        """``name`` checked, or the only predicate there is."""
        if name is not None:
            return self.schema[name].name
        names = [predicate.name for predicate in self.schema]
        if len(names) > 1:
            raise ConfigError(f"predicate: say which one; the schema has {names}.")
        return names[0]

    def ingest(
        self,
        path: Path | str,
        *,
        strict: bool = False,
        batch: int = INGEST_BATCH,
        progress: Callable[[int, int | None], None] | None = None,
    ) -> IngestOutcome:
        """Evidence from a JSONL, CSV or Parquet file; see ``lpf.ingest``."""
        return ingest(
            Path(path),
            self.evidence,
            self.schema,
            self.reader,
            strict=strict,
            batch=batch,
            rejects_folder=self.folder / "rejects",
            progress=progress,
        )

    def erase(self, *evidence_ids: str) -> Erasure:
        """Destroys items: texts, salts, vectors and everything kept about them; their records stay
        valid. Where this is interrupted, or the cache is out of reach, erasing them again goes on
        from there."""
        begun = begin_erasure(evidence_ids, self.evidence, self.folder / "rejects")
        forget_rows(self.evidence, self.folder / "vectors", [item.row_id for item in begun.items])
        for item in begun.items:
            self.cache.forget(item.content_key)
        return finish_erasure(begun, self.evidence)

    def reindex(self, progress: Progress | None = None) -> int:
        """Reads the items that the current reader has not read yet and makes the index for
        searches anew; returns how many were read."""
        read = self.index.source.read_missing(progress)
        self.vectors.rebuild()
        return read

    def replay(self, record_id: str, *, deep: bool = False) -> Replay:
        """A record's answer, recomputed from its factors or, ``deep``, from texts and model."""
        fields = self.records.expand(self.records.get(record_id))
        if not deep:
            return replay(fields)
        return replay_deep(
            fields,
            self.evidence,
            lambda: self.reader,
            lambda version: self.models.load_recorded(version).runtime(),
        )

    def learn_circuit(self) -> int:
        """Learns how predicates hang together from the known facts, keeps the circuit, and returns
        how many entities it was learned from. The next opening uses it."""
        rows = learn_circuit(self.folder, self.schema, self.facts)
        for name in ("background", "engine", "orchestrator"):
            self.__dict__.pop(name, None)
        return rows

    def use_model(self, version: str) -> None:
        """Makes a model the one that answers, from now on and here."""
        self.models.use(version)
        for name in ("model", "engine", "index", "vectors", "orchestrator", "_reader_id_and_width"):
            self.__dict__.pop(name, None)

    def close(self) -> None:
        """Writes what is pending and closes what is open."""
        with ExitStack() as stack:
            for name in ("database", "cache", "ledger"):  # the last is closed first
                opened = self.__dict__.pop(name, None)
                if opened is not None:
                    stack.callback(opened.close)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @part
    def _reader_id_and_width(self) -> tuple[str, int]:
        """The model's reader, so that a question about stored evidence opens none; without a model
        the workspace's own."""
        if self.model is not None and self.model.config.reader_id:
            return self.model.config.reader_id, self.model.config.encoder.input_width
        return self.reader.reader_id, self.reader.width


def find_folder(folder: Path | str | None) -> Path:
    """The folder itself where one is named; else the nearest with a settings file, upwards."""
    if folder is not None:
        if not (Path(folder) / FILE_NAME).is_file():
            raise WorkspaceError(
                f"{folder}: is no workspace (it has no {FILE_NAME}). Make one with 'lpf init'."
            )
        return Path(folder).resolve()
    here = Path.cwd().resolve()
    for candidate in (here, *here.parents):
        if (candidate / FILE_NAME).is_file():
            return candidate
    raise WorkspaceError(
        f"{here}: neither this folder nor one above it is a workspace. Make one with 'lpf init', "
        "or name one with --workspace DIR."
    )
