"""The façade that the command line and the service call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.errors import CacheUnavailableError, ConfigError, WorkspaceError
from lpf.index import forget_rows
from lpf.ingest import Erasure, IngestOutcome, begin_erasure, finish_erasure, ingest, scrub
from lpf.ledger import erase_query_texts
from lpf.orchestrator import AuditMode, Replay, replay, replay_deep
from lpf.results import QueryResult
from lpf.schema import Schema
from lpf.types import QueryOptions
from lpf.workspace.circuit_file import LearnedCircuit, learn_circuit
from lpf.workspace.creation import create_workspace
from lpf.workspace.models import previous_model
from lpf.workspace.settings import FILE_NAME, read_settings
from lpf.workspace.training_runs import (
    Reporter,
    TrainingCallbacks,
    TrainingOutcome,
    TrainingPlan,
    run_training,
)
from lpf.workspace.training_sources import TrainingSource
from lpf.workspace.wiring import Wiring

if TYPE_CHECKING:
    from lpf.workspace.domain_data import AddedDomain

# How many questions are answered, and recorded, in one go.
BATCH = 1000
INGEST_BATCH = 256
REPORTS = "reports"
Progress = Callable[[int, int], None]


class Workspace(Wiring):
    """What can be done with a workspace. Close it, or use it in a ``with``."""

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
        self._forget(begun)
        return finish_erasure(begun, self.evidence)

    def _forget(self, begun: Erasure) -> None:
        try:
            for item in begun.items:
                self.cache.forget(item.content_key)
        except CacheUnavailableError as error:
            names = ", ".join(item.evidence_id for item in begun.items)
            raise CacheUnavailableError(
                f"{names}: text and vectors are erased, but numbers computed from them may still "
                f"be in the shared cache: {error} The erasure is pending until it is repeated."
            ) from error

    def erase_query_texts(self, *record_ids: str) -> tuple[int, tuple[str, ...]]:
        """Destroys the words that questions were asked with; how many there were, and warnings
        where their bytes may be there still. The records stay valid."""
        erased = erase_query_texts(self.database, record_ids)
        warning = scrub(self.database)
        return erased, (warning,) if warning else ()

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

    def learn_circuit(self) -> LearnedCircuit:
        """Learns how predicates hang together from the known facts, and answers with it from now
        on, here and in the next opening."""
        learned = learn_circuit(self.folder, self.schema, self.facts)
        self.invalidate("background", "engine", "orchestrator")
        return learned

    def train(
        self,
        source: TrainingSource | Path | str | None = None,
        plan: TrainingPlan | None = None,
        *,
        use: bool = True,
        report: Reporter | None = None,
        report_folder: Path | None = None,
        watching: TrainingCallbacks | None = None,
    ) -> TrainingOutcome:
        """Trains a model on a data set's file, a domain, or (None) the labelled evidence here, and
        keeps it; it answers from now on if told to ``use`` it. ``report`` writes about it into
        ``report_folder``, by default one of the workspace."""
        named = source if isinstance(source, TrainingSource) else TrainingSource(source)
        run = run_training(self, named, plan or TrainingPlan(), watching or TrainingCallbacks())
        version = run.trained.save(self.folder / "models")
        before = self.models.active()
        earlier = None
        if before is not None and before != version:
            earlier = previous_model(self.models, before, run.trained.card)
        if use:
            self.use_model(version)
        folder = report_folder or self.folder / REPORTS / version
        written = None if report is None else report(run.trained, folder, run.dataset.name)
        return TrainingOutcome(version, self.models.active() == version, run, written, earlier)

    def add_domain(
        self, name: str, preset: str = "paper", seed: int = 42, *, prefix: str | None = None
    ) -> AddedDomain:
        """Evidence and known facts of a generated domain's test entities, unlabelled. Where other
        evidence has their ids, the domain's name is put before them; the outcome says so."""
        from lpf.workspace.domain_data import add_domain  # what draws entities is slow to import

        return add_domain(self, name, preset, seed, prefix)

    def use_model(self, version: str) -> None:
        """Makes a model the one that answers, from now on and here."""
        self.models.use(version)
        names = ("model", "engine", "index", "vectors", "orchestrator", "_reader_id_and_width")
        self.invalidate(*names)

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


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
