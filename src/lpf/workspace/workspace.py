"""A workspace: a folder with ``lpf.toml`` that stores evidence and facts, answers questions and
records every answer. The command line is built on this class."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpf.errors import CacheUnavailableError, ConfigError, StoreDamagedError
from lpf.explain import (
    AnswerExplanation,
    Changes,
    CollectionPlan,
    NewText,
    NextEvidence,
    explain_record,
    explain_result,
    next_evidence_of,
    supposed,
)
from lpf.factors.keys import content_key
from lpf.index.near_names import similar_entities
from lpf.index.vector_folders import VectorFolders
from lpf.ingest import (
    Erasure,
    FileOptions,
    IngestOutcome,
    begin_erasure,
    edit_item,
    finish_erasure,
    ingest,
    ingest_rows,
    scrub,
)
from lpf.ingest.input_files import Rows
from lpf.ledger import erase_query_texts
from lpf.ledger.contents import require_answer
from lpf.ledger.formats import DISCLOSURE_FORMAT
from lpf.model.zero_label import ZeroLabelNumbers
from lpf.orchestrator import AuditMode, Replay, replay, replay_deep
from lpf.reading import ReadRequest, claim_reader, is_pair, open_reader
from lpf.reading.pair import text_part
from lpf.reading.words import wordless
from lpf.results import QueryResult, QueryResults
from lpf.review import Reviews
from lpf.review.records import REVIEW
from lpf.schema import Schema
from lpf.storage.evidence import DamagedItem, StoredEvidence
from lpf.storage.seals import damaged_error
from lpf.types import QueryOptions
from lpf.workspace.circuit import LearnedCircuit, learn_circuit
from lpf.workspace.claims import zero_label_model
from lpf.workspace.entities import (
    EntitySummary,
    Ranking,
    all_questions_of,
    list_entities,
    rank,
    require_value,
)
from lpf.workspace.folder import create_workspace, find_folder
from lpf.workspace.models import previous_model
from lpf.workspace.settings import check_asked_by, read_settings
from lpf.workspace.training_runs import (
    Reporter,
    TrainingCallbacks,
    TrainingOutcome,
    TrainingPlan,
    run_training,
)
from lpf.workspace.training_sources import TrainingSource
from lpf.workspace.wiring import CIRCUIT_PARTS, MODEL_PARTS, REJECTS, Wiring, part

if TYPE_CHECKING:
    from lpf.monitor.monitoring import Monitoring
    from lpf.workspace.synthetic import AddedDomain

QUERY_BATCH = 1000  # questions answered and recorded together
SIMILAR_LOOKED_UP = 100
INGEST_BATCH = 256
REPORTS = "reports"
Progress = Callable[[int, int], None]


class Workspace(Wiring):
    """A workspace, opened from its folder. Close it, or use it in a ``with`` statement.

    Without a folder, the current folder or the nearest one above it that is a workspace is opened.
    WorkspaceError if there is none, or if its settings cannot be used. Records say that
    ``asked_by`` asked; by default what the settings say, or user and host.
    """

    def __init__(self, folder: Path | str | None = None, *, asked_by: str | None = None) -> None:
        if asked_by is not None:
            check_asked_by(asked_by, "asked_by")
        super().__init__(read_settings(find_folder(folder)), asked_by)

    @classmethod
    def create(
        cls,
        folder: Path | str,
        schema: Schema,
        *,
        reader: str = "minilm",
        store_url: str | None = None,
    ) -> Workspace:
        """Create a workspace with an empty store and a new signing key, and open it.
        WorkspaceError if the folder is a workspace already."""
        create_workspace(Path(folder), schema, reader, store_url)
        return cls(folder)

    @classmethod
    def create_for_claims(
        cls, folder: Path | str, *, reader: str = "minilm", store_url: str | None = None
    ) -> Workspace:
        """Create a workspace that gives verdicts on claims (supported, refuted, not enough
        information) from the first evidence on, without labels. ReaderUnavailableError if the
        stance reader is not installed."""
        numbers = ZeroLabelNumbers.installed()
        model = zero_label_model(numbers, claim_reader(open_reader(reader)))
        workspace = cls.create(
            folder, Schema((numbers.predicate(),)), reader=reader, store_url=store_url
        )
        workspace.use_model(workspace.models.save(*model))
        return workspace

    @classmethod
    def open(cls, folder: Path | str | None = None, *, asked_by: str | None = None) -> Workspace:
        """The same as ``Workspace(folder, asked_by=...)``."""
        return cls(folder, asked_by=asked_by)

    @part
    def reviews(self) -> Reviews:
        """What people say about the answers. By default the reviewer is who asks."""
        return Reviews(self, self.settings.asked_by if self.asked_by is None else self.asked_by)

    def query(
        self,
        entity_id: str,
        predicate: str | None = None,
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
    ) -> QueryResult:
        """Answer one question. ``predicate`` may be omitted if the schema has only one. If no item
        and no fact counts, there is no answer: ``top_value`` is None."""
        result = self.orchestrator.query(
            entity_id, self.predicate(predicate), options or self.settings.query, audit
        )
        self._add_claims([result])
        self._add_similar([result])
        self._add_trust([result])
        return result

    def explain(
        self,
        entity_id: str,
        predicate: str | None = None,
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
    ) -> AnswerExplanation:
        """Answer a question, record the answer, and take it apart: what prior, facts and every item
        add to it, the answer without each item, and what would change it."""
        return self.explain_result(self.query(entity_id, predicate, options, audit))

    def explain_result(self, result: QueryResult) -> AnswerExplanation:
        """Take an answer of this workspace apart."""
        found = explain_result(result, self.engine, self.background)
        return replace(found, claim=result.claim)

    def explain_record(self, record_id: str) -> AnswerExplanation:
        """Take a recorded answer apart, from the record alone: with the numbers of that time."""
        found = explain_record(self.records.expand(self.records.get(record_id)))
        damaged: list[DamagedItem] = []
        claims = set(self.evidence.claims({item.name for item in found.items}, damaged).values())
        hidden = [f"the claim of {one.evidence_id} is not shown: {one.reason}" for one in damaged]
        claim = claims.pop() if len(claims) == 1 else None
        return replace(found, claim=claim, notes=(*found.notes, *hidden))

    def what_if(
        self,
        entity_id: str,
        predicate: str | None = None,
        changes: Changes | None = None,
        options: QueryOptions | None = None,
    ) -> AnswerExplanation:
        """The answer if ``changes`` were so, taken apart. Nothing is stored or recorded."""
        supposing = changes or Changes()
        name = self.predicate(predicate)
        chosen = options or self.settings.query
        result = self.orchestrator.suppose(entity_id, name, chosen, supposing.facts)
        self._add_claims([result])
        reader_id, width = self._reader_id_and_width
        found = supposed(
            result,
            self.engine,
            self.background,
            supposing,
            self._new_texts(supposing.add, result.claim or self.default_claim()),
            self.settings.index.copy_similarity or None,
            text_part(reader_id, width),
        )
        return replace(found, claim=result.claim)

    def _new_texts(self, texts: Sequence[str], claim: str | None) -> list[NewText]:
        """Texts as the model reads them, with the claim of the other items."""
        if not texts:
            return []
        reader = self.index.source.reader
        given = claim if reader.uses_claim else None
        rows = reader.read_many([ReadRequest(text, given) for text in texts])
        blank = wordless(texts)
        return [
            NewText(
                f"new-{place + 1}",
                rows[place],
                content_key(text, given),
                is_wordless=blank is not None and bool(blank[place]),
            )
            for place, text in enumerate(texts)
        ]

    def next_evidence(
        self,
        entity_id: str,
        predicate: str | None = None,
        plan: CollectionPlan | None = None,
        options: QueryOptions | None = None,
    ) -> NextEvidence:
        """What to collect next about an entity: how many bits one more item of each kind, or a
        related fact, is expected to tell. Nothing is recorded. ConfigError for an unknown entity,
        one that a known fact answers about, or if nothing is stored to compare."""
        name = self.predicate(predicate)
        for similar in similar_entities(self.database, [entity_id]).values():
            like = f" Similar IDs: {', '.join(similar)}." if similar else ""
            raise ConfigError(
                f"nothing is stored about {entity_id!r}.{like} Nothing was computed.",
                field="entity_id",
                hint="For an entity of which nothing is known yet, ingest one item or add a fact "
                "first.",
            )
        result = self.orchestrator.suppose(entity_id, name, options or self.settings.query)
        return next_evidence_of(
            result, self.engine, self.background, self.index.source, plan or CollectionPlan()
        )

    def query_many(
        self,
        questions: Iterable[tuple[str, str] | str],
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
        progress: Progress | None = None,
    ) -> QueryResults:
        """Answer many questions in batches of 1,000. A question is (entity ID, predicate), or just
        the entity ID if the schema has only one predicate."""
        pairs = [(q, self.predicate(None)) if isinstance(q, str) else q for q in questions]
        results = QueryResults()
        for start in range(0, len(pairs), QUERY_BATCH):
            chunk = pairs[start : start + QUERY_BATCH]
            answers = self.orchestrator.query_many(chunk, options or self.settings.query, audit)
            self._add_claims(answers)
            self._add_similar(answers)
            self._add_trust(answers)
            results += answers
            if progress is not None:
                progress(len(results), len(pairs))
        return results

    def entities(
        self, limit: int = 100, after: str = "", like: str | None = None
    ) -> list[EntitySummary]:
        """The entities with evidence or facts, by ID, with what is stored about each and its last
        answers. For the next page, pass the last ID as ``after``."""
        return list_entities(self.database, self.contents, limit=limit, after=after, like=like)

    def questions(self, predicate: str | None = None) -> list[tuple[str, str]]:
        """(entity ID, predicate) for every entity with evidence or facts about ``predicate`` or a
        related one, or (None) about any predicate of the schema."""
        every = {each.name for each in self.schema}
        wanted = every if predicate is None else {self.predicate(predicate)}
        return all_questions_of(self.database, self.schema, wanted)

    def rank(
        self,
        predicate: str | None = None,
        value: str | None = None,
        limit: int | None = 20,
        options: QueryOptions | None = None,
        audit: AuditMode = "sync",
        progress: Progress | None = None,
    ) -> Ranking:
        """Answer the question about every entity, record the answers, and rank the entities by the
        probability of ``value``, by default the last value of the predicate. The ranking has the
        first ``limit`` of them, or all if it is None. Entities with damaged facts are left out and
        named."""
        name = self.predicate(predicate)
        chosen = require_value(self.schema[name].values, name, value)
        pairs = self.questions(name)
        failed: dict[str, str] = {}

        def one_by_one(chunk: Sequence[tuple[str, str]]) -> Iterator[QueryResult]:
            for pair in chunk:
                try:
                    yield self.query_many([pair], options, audit)[0]
                except StoreDamagedError as error:
                    failed[pair[0]] = str(error)

        def answers() -> Iterator[QueryResult]:
            for start in range(0, len(pairs), QUERY_BATCH):
                chunk = pairs[start : start + QUERY_BATCH]
                try:
                    together = self.query_many(chunk, options, audit)
                except StoreDamagedError:  # nothing was answered or recorded
                    yield from one_by_one(chunk)
                else:
                    yield from together
                if progress is not None:
                    progress(min(start + QUERY_BATCH, len(pairs)), len(pairs))

        return replace(rank(answers(), chosen, limit), failed=failed)

    def disclose(self, evidence_id: str, records: Sequence[str] = ()) -> dict[str, Any]:
        """The text and claim of an item, with the salt that ties them to the hash in its records,
        as a document that ``check_bundle.py`` checks: of the version that all ``records`` used, or
        of the current one. UnknownEvidenceError if the item was erased; ConfigError if one of
        ``records`` was not computed from this item, or from another version than the others."""
        stored = self._version_used(evidence_id, records)
        return {
            "format": DISCLOSURE_FORMAT,
            "evidence_id": evidence_id,
            "text": stored.evidence.text_content,
            "claim": stored.evidence.claim,
            "salt": stored.salt.hex(),
            "commitment": stored.commitment.hex(),
        }

    def _version_used(self, evidence_id: str, records: Sequence[str]) -> StoredEvidence:
        """The newest version that all records were computed from."""
        if not records:
            return self.evidence.get(evidence_id)
        damaged: list[DamagedItem] = []
        candidates = self.evidence.versions(evidence_id, damaged)
        for name in records:
            fields = self.records.get(name).fields
            chains = [one.get("evidence_chain", []) for one in (fields, *fields.get("related", []))]
            used = {item[1] for chain in chains for item in chain if item[0] == evidence_id}
            remaining = [one for one in candidates if one.commitment.hex() in used]
            if not remaining and damaged:
                raise damaged_error(damaged, "Nothing was disclosed.")
            if not remaining:
                version = "the same version of " if used else ""
                raise ConfigError(
                    f"{name} was not computed from {version}the text of {evidence_id!r}. Nothing "
                    "was disclosed.",
                    field="record",
                    hint="Disclose one version at a time, each for the records that used it."
                    if used
                    else f"'lpf ledger show {name}' lists its items.",
                )
            candidates = remaining
        return candidates[-1]

    def _add_claims(self, results: Sequence[QueryResult]) -> None:
        """Looked up here and not with the items: those are cached, and a claim must not outlive its
        erasure."""
        damaged: list[DamagedItem] = []
        with_claims = [one for one in results if one.evidence and one.evidence.has_claims]
        if with_claims:
            names = {name for result in with_claims for name in result.evidence_chain}
            claims = self.evidence.claims(names, damaged)
            for result in with_claims:
                chain = result.evidence_chain
                result.item_claims = {name: claims[name] for name in chain if name in claims}
        for item in damaged:
            for result in results:
                if item.evidence_id in result.evidence_chain:
                    note = f"text and claim of {item.evidence_id} are not shown: {item.reason}"
                    result.notes = (*result.notes, note)

    def _add_similar(self, results: Sequence[QueryResult]) -> None:
        """Known IDs like those of unknown entities, for the first 100 of a batch: each takes some
        milliseconds to look up."""
        unanswered = [result for result in results if not result.has_answer][:SIMILAR_LOOKED_UP]
        if unanswered:
            names = [result.entity_id for result in unanswered]
            similar = similar_entities(self.database, names)
            for result in unanswered:
                result.similar = similar.get(result.entity_id)

    def _add_trust(self, results: Sequence[QueryResult]) -> None:
        """What monitoring found about the model, for answers that come from it. Records do not have
        it: it is about the model, not about this answer."""
        stored = self.trust.read()
        if stored is None or self.model is None:
            return
        for result in results:
            trust = stored.of(self.model.version, result.predicate)
            if trust is None or result.source not in ("inference", "related"):
                continue
            result.trust = trust
            if trust.warning is not None:
                result.notes = (*result.notes, trust.warning)
            if trust.state == "not trusted" and result.track_record is not None:
                result.track_record = replace(result.track_record, overtaken=True)

    def monitor(
        self,
        outcomes: Path | str | None = None,
        *,
        predicate: str | None = None,
        since: datetime | None = None,
        window: str | None = None,
        options: FileOptions | None = None,
        save: bool = True,
    ) -> Monitoring:
        """Score recorded answers whose outcome is known, compare texts, answers and sources with
        training, and say whether the model's probabilities can still be trusted.

        ``outcomes`` is a file of outcomes; by default they are the known facts. ``predicate`` and
        ``since`` restrict what counts; ``window`` is the size of windows, such as 100 (outcomes) or
        30d (days). With ``save`` the verdict is stored, and answers of this model show it from then
        on; one on a part of the predicates or of the time is never stored.
        """
        from lpf.workspace.monitor_runs import run_monitor  # queries do not need it

        return run_monitor(
            self,
            outcomes,
            predicate=predicate,
            since=since,
            window=window,
            options=options,
            save=save,
        )

    def predicate(self, name: str | None) -> str:
        """``name`` if the schema has it, or (None) the only predicate of the schema."""
        if name is not None:
            return self.schema[name].name
        names = [predicate.name for predicate in self.schema]
        if len(names) > 1:
            raise ConfigError(f"is missing; choose from {names}.", field="predicate")
        return names[0]

    def ingest(
        self,
        data: Path | str | Rows,
        *,
        strict: bool = False,
        batch: int = INGEST_BATCH,
        progress: Callable[[int, int | None], None] | None = None,
        options: FileOptions | None = None,
    ) -> IngestOutcome:
        """Add evidence from a JSONL, CSV, Excel or Parquet file, a list of dicts or a pandas
        DataFrame; or the items of a data set file. ``options`` say how to read it.

        An item whose ``evidence_id`` is in the store with other content gets a new version. Rows
        that cannot be used are skipped and written to the folder ``rejects``, and the outcome
        lists the first of them. With ``strict`` InputFileError names them and nothing is added.
        """
        shared: dict[str, Any] = {
            "rejects_folder": self.folder / REJECTS,
            "strict": strict,
            "batch": batch,
            "progress": progress,
            "options": options,
            "claim": self.default_claim(),
        }
        self.list_copies()
        parts = self.evidence, self.schema, self.reader_for_ingestion
        if isinstance(data, str | os.PathLike):
            outcome = ingest(Path(data), *parts, **shared)
        else:
            name = "DataFrame" if hasattr(data, "itertuples") else "rows"
            outcome = ingest_rows(data, *parts, name=name, **shared)
        self.refresh_reader()
        return outcome

    def edit(self, evidence_id: str, **changes: object) -> StoredEvidence:
        """Change fields of an item: ``text_content``, ``credibility``, ``timestamp``, ``source``,
        ``claim``, ``report_id``, ``supports_value`` or ``evidence_type``. The item gets a new
        version; the old one stays for the records that used it."""
        return edit_item(evidence_id, changes, self.evidence, self.schema, self.reader.base)

    def erase(self, *evidence_ids: str) -> Erasure:
        """Destroy items in all their versions: texts, salts, vectors and cached numbers. Their
        records stay valid. If this is interrupted, ends with warnings or the cache cannot be
        reached, erase the same items again to finish it."""
        copies = VectorFolders(self.evidence, self.folder)
        rejects = [folder / REJECTS for folder in copies.neighbours()]
        behind = [Path(listed.path, REJECTS) for listed in copies.behind()]
        begun = begin_erasure(evidence_ids, self.evidence, self.folder / REJECTS, rejects, behind)
        names = {item.evidence_id for item in begun.items}
        with_rejects = [folder.parent for folder in begun.rejects_left]
        remaining = copies.forget([item.row_id for item in begun.items], len(names), with_rejects)
        self._erase_from_cache(begun)
        warnings = (*begun.warnings, *remaining)
        return finish_erasure(replace(begun, warnings=warnings), self.evidence)

    def _erase_from_cache(self, begun: Erasure) -> None:
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
        """Destroy the texts of questions and the comments of reviews; their records stay valid.
        Returns how many there were, and warnings if bytes of them may remain on disk."""
        erased = erase_query_texts(self.database, record_ids)
        warning = scrub(self.database)
        return erased, (warning,) if warning else ()

    def reindex(self, progress: Progress | None = None) -> int:
        """Read the items that the current reader has not read yet, rebuild the index for searches
        by text, and return how many items were read."""
        read = self.index.source.read_missing(progress)
        self.vectors.rebuild()
        return read

    def replay(self, record_id: str, *, deep: bool = False) -> Replay:
        """Compute a record's answer again: from its factors, or (``deep``) from texts and model.
        Of a review, its revised answer, from the record of the answer."""
        fields = self.records.expand(self.records.get(record_id))
        if fields.get("kind") == REVIEW:
            return self.reviews.replay(record_id, deep=deep)
        require_answer(fields)
        if not deep:
            return replay(fields)
        return replay_deep(
            fields,
            self.evidence,
            lambda: self.reader_for(is_pair(fields["context"]["versions"]["reader"])),
            self.models.load_recorded,
            self.background.circuit,
        )

    def learn_circuit(self) -> LearnedCircuit:
        """Learn from known facts and labelled evidence how predicates are related. The circuit is
        stored and used for all answers from now on. ConfigError if there are neither."""
        learned = learn_circuit(self.folder, self.schema, self.facts, self.evidence)
        self.invalidate(*CIRCUIT_PARTS)
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
        """Train a model on a data set file, a domain, or (None) this workspace's labelled evidence,
        and store it. ``use`` makes it the active model. ``report`` writes a report on it into
        ``report_folder``, by default ``reports/<version>``."""
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
        """Add evidence (without labels) and known facts of a synthetic domain's test entities. If
        other evidence uses their IDs, they get the domain's name as prefix; see the outcome."""
        from lpf.workspace.synthetic import add_domain  # the generator is slow to import

        return add_domain(self, name, preset, seed, prefix)

    def use_model(self, version: str) -> None:
        """Make a model the active one, which answers all questions from now on."""
        self.models.use(version)
        self.invalidate(*MODEL_PARTS)
        self.refresh_reader()

    def __repr__(self) -> str:
        return f"Workspace({str(self.folder)!r})"

    def __enter__(self) -> Workspace:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
