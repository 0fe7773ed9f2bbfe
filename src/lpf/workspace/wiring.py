"""The parts of a workspace: each is built when first used, once for all threads."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, Generic, Protocol, TypeVar, overload

from lpf.engine import Background, Engine, FactorCache
from lpf.errors import LedgerKeyError, WorkspaceError
from lpf.index import EvidenceIndex, FeatureSource, VectorIndex, readers_used
from lpf.index.vector_folders import VectorFolders
from lpf.ingest.rejects import may_have_rejects
from lpf.ledger.contents import LedgerContents
from lpf.ledger.keys import load_private
from lpf.ledger.reader import LedgerReader
from lpf.ledger.writer import Ledger
from lpf.model.artefact import Artefact
from lpf.monitor.trust_file import TrustFile
from lpf.orchestrator import Orchestrator, Parts
from lpf.reading import Reader, claim_reader, is_pair, open_reader
from lpf.reading.fitted_words import without_words, words_width
from lpf.reading.pair import text_part
from lpf.storage.cache import Cache, open_cache
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FactStore
from lpf.storage.migrations import migrate
from lpf.workspace.circuit import read_circuit
from lpf.workspace.models import Models
from lpf.workspace.settings import KEY_VARIABLE, Settings

REJECTS = "rejects"  # the folder of rows that were not ingested

Built = TypeVar("Built")


class HasParts(Protocol):
    """``lock`` is held while a part is built. Parts use other parts, so it is re-entrant."""

    lock: threading.RLock
    is_closed: bool


class part(Generic[Built]):  # noqa: N801  (used as a decorator, like property)
    """Like ``functools.cached_property``, but two threads never build the same part. Two ledgers
    in one process would not share their commits, and ``close`` would miss one of them."""

    def __init__(self, build: Callable[[Any], Built]) -> None:
        self._build = build
        self.__doc__ = build.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, instance: None, owner: type) -> part[Built]: ...

    @overload
    def __get__(self, instance: HasParts, owner: type) -> Built: ...

    def __get__(self, instance: HasParts | None, owner: type) -> part[Built] | Built:
        if instance is None:
            return self
        with instance.lock:
            built = vars(instance)
            if self.name not in built:
                if instance.is_closed:
                    raise WorkspaceError(
                        "this workspace was closed. Nothing was done; open it again."
                    )
                built[self.name] = self._build(instance)
            value: Built = built[self.name]
            return value


class Wiring:
    """The parts of one workspace folder."""

    def __init__(self, settings: Settings, asked_by: str | None = None) -> None:
        self.settings = settings
        self.asked_by = asked_by
        self.folder = settings.folder
        self.schema = settings.schema
        self.lock = threading.RLock()
        self.is_closed = False

    @part
    def database(self) -> Database:
        """The store, migrated to the newest version. A missing file is an error: an empty store
        in its place would look like an answer."""
        store = self.settings.store
        database = Database(self.settings.store_address, busy_seconds=store.busy_seconds)
        if database.path is not None and not database.path.exists():
            raise WorkspaceError(
                f"{database.path}: the store is missing. Nothing was created in its place; put "
                "it back, for example from a backup, or create another workspace: lpf init FOLDER"
            )
        migrate(database)
        return database

    @part
    def evidence(self) -> EvidenceStore:
        """The items. Copies of vectors in this folder are removed if others erased items."""
        store = EvidenceStore(self.database)
        VectorFolders(store, self.folder).follow(may_have_rejects(self.folder / REJECTS))
        return store

    @part
    def facts(self) -> FactStore:
        return FactStore(self.database, self.schema)

    @part
    def cache(self) -> Cache:
        settings = self.settings.cache
        return open_cache(self.settings.cache_url, ttl_seconds=settings.ttl_seconds)

    @part
    def text_reader(self) -> Reader:
        """Reads texts alone. Opening it takes half a second, so it is opened only when a text must
        be read."""
        return open_reader(self.settings.reader.name)

    @part
    def reader(self) -> Reader:
        """Reads evidence: texts alone or with their claims, as the active model does. Without a
        model, as the setting ``with_claim`` says, or as stored evidence was read if it is "auto":
        vectors of two readers cannot be compared."""
        return self._pinned(self.reader_for(self._reads_claims()))

    def reader_for(self, with_claim: bool) -> Reader:
        """A reader of texts with their claims, or of texts alone, whatever the settings say."""
        built: Reader | None = vars(self).get(Wiring.reader.name)
        if built is not None and built.uses_claim == with_claim:
            return built
        return claim_reader(self.text_reader) if with_claim else self.text_reader

    def reader_for_training(self, has_claims: bool, onto: Artefact | None = None) -> Reader:
        """The reader for data to train on: that of the model that gets a head, else the newest,
        with claims if the data has any, unless the setting ``with_claim`` says otherwise."""
        if onto is not None:
            return onto.reader(self.reader_for(is_pair(onto.config.reader_id))).base
        setting = self.settings.reader.with_claim
        if not (has_claims if setting == "auto" else setting):
            return self.reader_for(False).newest()
        # A reader that an older model pins may read claims, but not stances.
        newest = claim_reader(self.text_reader.newest())
        built: Reader | None = vars(self).get(Wiring.reader.name)
        if built is None or built.base.reader_id != newest.reader_id:
            return newest
        return built.base

    def reader_for_ingestion(self, has_claims: bool) -> Reader:
        """The workspace's reader, without the words of the active model: those are read when they
        are needed, and another model has others. If nothing has decided yet if claims are read,
        they are if the evidence to be added has any."""
        return self.reader_for(has_claims) if self._is_undecided() else self.reader.base

    def default_claim(self) -> str | None:
        """The claim of evidence that comes without one: the description of the only predicate, if
        the settings ask for that. None where claims are not read, so that all evidence of a
        workspace is read alike."""
        settings = self.settings.reader
        claim = self.schema.claim if settings.description_as_claim else None
        if claim is None or settings.with_claim is False:
            return None
        return claim if self._is_undecided() or self._reads_claims() else None

    def refresh_reader(self) -> None:
        """Drop the reader, and what was built with it, if a new model or the first evidence decided
        that the other one is to be used."""
        with self.lock:
            built = vars(self).get(Wiring.reader.name)
            if built is None:
                return
            if built.uses_claim != self._reads_claims() or self._pinned(built) is not built:
                self.invalidate(Wiring.reader, *MODEL_PARTS)

    def _pinned(self, reader: Reader) -> Reader:
        """The variant that the active model pins: one from before passages gets a reader that cuts
        long texts, one with words gets a reader of these words, one with a tuned reader gets
        that."""
        pinned = "" if self.model is None else self.model.config.reader_id
        if self.model is None or not pinned:
            return reader.newest()
        return reader if reader.reader_id == pinned else self.model.reader(reader)

    def _is_undecided(self) -> bool:
        """True if nothing says yet whether claims are read."""
        is_auto = self.settings.reader.with_claim == "auto"
        return is_auto and self.model is None and not readers_used(self.evidence)

    def _reads_claims(self) -> bool:
        if self.model is not None and self.model.config.reader_id:
            return is_pair(self.model.config.reader_id)
        setting = self.settings.reader.with_claim
        if setting != "auto":
            return setting
        return any(map(is_pair, readers_used(self.evidence)))

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
            text_part=text_part(reader_id, width),
        )

    @part
    def vectors(self) -> VectorIndex:
        """Search by text across entities. The features of words are left out: they are not
        compared, and items that no question was asked about do not have them."""
        self.list_copies()
        reader_id, width = self._reader_id_and_width
        plain, width = without_words(reader_id), width - words_width(reader_id)
        source = FeatureSource(
            self.evidence, plain, width, lambda: self.reader.base, text_part(plain, width)
        )
        return VectorIndex(source, self.folder / "vectors", self.settings.vectors)

    @part
    def models(self) -> Models:
        return Models(self.folder / "models")

    @part
    def model(self) -> Artefact | None:
        """The active model, or None."""
        active = self.models.active()
        return None if active is None else self.models.load(active)

    @part
    def background(self) -> Background:
        return Background(self.schema, read_circuit(self.folder))

    @part
    def engine(self) -> Engine | None:
        if self.model is None:
            return None
        cache = FactorCache(self.cache, self._reader_id_and_width[0])
        return Engine(self.model.runtime(), self.schema, self.background.circuit, cache)

    @part
    def ledger(self) -> Ledger:
        """The ledger, open for writing. It is signed if the private key is here."""
        key_file = self.settings.key_file
        if KEY_VARIABLE in os.environ and not key_file.exists():
            raise LedgerKeyError(
                f"{key_file}: {KEY_VARIABLE} names this key file, which does not exist. Nothing "
                "was answered; put the key there, or unset the variable."
            )
        key = load_private(key_file) if key_file.exists() else None
        seconds = self.settings.ledger.checkpoint_seconds
        return Ledger(self.database, key, checkpoint_seconds=seconds)

    @part
    def records(self) -> LedgerReader:
        """The ledger, for reading."""
        return LedgerReader(self.database)

    @part
    def contents(self) -> LedgerContents:
        """Finds records by what they are about."""
        return LedgerContents(self.database)

    @part
    def trust(self) -> TrustFile:
        """What monitoring found about the active model."""
        return TrustFile(self.folder)

    @part
    def orchestrator(self) -> Orchestrator:
        return Orchestrator(
            Parts(
                self.schema,
                self.facts,
                self.index,
                self.background,
                self.engine,
                self._reader_id_and_width[0],
                self.ledger,
                self.settings.facts,
                self.settings.asked_by if self.asked_by is None else self.asked_by,
            )
        )

    @part
    def _reader_id_and_width(self) -> tuple[str, int]:
        """ID and width of the model's reader, so that a question about stored evidence opens no
        reader. Without a model, those of the workspace's reader."""
        if self.model is not None and self.model.config.reader_id:
            return self.model.config.reader_id, self.model.config.encoder.input_width
        return self.reader.reader_id, self.reader.width

    def list_copies(self) -> None:
        """List this workspace in the store, before it writes copies of vectors or rejects rows."""
        VectorFolders(self.evidence, self.folder).register()

    def invalidate(self, *parts: part[Any]) -> None:
        """Drop parts that are out of date; they are built again when next used.

        A part under construction holds the lock, so this waits for it and drops it too: no part
        built from old inputs survives.
        """
        with self.lock:
            for one in parts:
                vars(self).pop(one.name, None)

    def close(self) -> None:
        """Write what is pending and close what is open. A closed workspace cannot be used."""
        with self.lock:
            self.is_closed = True
            opened = (Wiring.database, Wiring.cache, Wiring.ledger)
            to_close = [vars(self)[one.name] for one in opened if one.name in vars(self)]
            self.invalidate(*(one for one in vars(Wiring).values() if isinstance(one, part)))
        with ExitStack() as stack:  # closes the last one first
            for one in to_close:
                stack.callback(one.close)


# Parts built from the active model, and parts built from the learned circuit.
MODEL_PARTS: tuple[part[Any], ...] = (
    Wiring.model,
    Wiring.engine,
    Wiring.index,
    Wiring.vectors,
    Wiring.orchestrator,
    Wiring._reader_id_and_width,
)
CIRCUIT_PARTS: tuple[part[Any], ...] = (Wiring.background, Wiring.engine, Wiring.orchestrator)
