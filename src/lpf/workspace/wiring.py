"""The parts of a workspace and how they are put together.

Parts that are made when first used, once, whatever the number of threads that ask.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import ExitStack
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar, overload

from lpf.engine import Background, Engine, FactorCache
from lpf.errors import LedgerKeyError, WorkspaceError
from lpf.index import EvidenceIndex, VectorIndex, pair_text_part
from lpf.ledger.keys import load_private
from lpf.ledger.reader import LedgerReader
from lpf.ledger.writer import Ledger
from lpf.model.artefact import Artefact
from lpf.orchestrator import Orchestrator, Parts
from lpf.reading import Reader, open_reader
from lpf.storage.cache import Cache, open_cache
from lpf.storage.database import Database
from lpf.storage.evidence import EvidenceStore
from lpf.storage.facts import FactStore
from lpf.storage.migrations import migrate
from lpf.workspace.circuit_file import read_circuit
from lpf.workspace.models import Models
from lpf.workspace.settings import KEY_VARIABLE, Settings

Made = TypeVar("Made")


class HasParts(Protocol):
    """``making`` is held while a part is made; parts are made of parts, so it is re-entrant."""

    making: threading.RLock
    is_closed: bool


class part(Generic[Made]):  # noqa: N801  (used as a decorator, like property)
    """``functools.cached_property`` without the race that it has from Python 3.12 on: two ledgers
    in one process would not share their commits, and closing would miss one of them."""

    def __init__(self, make: Callable[[Any], Made]) -> None:
        self._make = make
        self.__doc__ = make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, instance: None, owner: type) -> part[Made]: ...

    @overload
    def __get__(self, instance: HasParts, owner: type) -> Made: ...

    def __get__(self, instance: HasParts | None, owner: type) -> part[Made] | Made:
        if instance is None:
            return self
        with instance.making:
            known = vars(instance)
            if self._name not in known:
                _require_open(instance)
                known[self._name] = self._make(instance)
            made: Made = known[self._name]
            return made


def _require_open(instance: HasParts) -> None:
    if instance.is_closed:
        raise WorkspaceError("this workspace was closed. Nothing was done; open it again.")


class Wiring:
    """One folder's parts, each opened when first used, once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.folder = settings.folder
        self.schema = settings.schema
        self.making = RLock()
        self.is_closed = False

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
        cache = FactorCache(self.cache, self._reader_id_and_width[0])
        return Engine(self.model.runtime(), self.schema, self.background.circuit, cache)

    @part
    def ledger(self) -> Ledger:
        """The ledger, open for writing; signed where the private key is here."""
        key_file = self.settings.key_file
        if KEY_VARIABLE in os.environ and not key_file.exists():
            raise LedgerKeyError(
                f"{key_file}: {KEY_VARIABLE} names this key, and it is not there. Nothing was "
                "answered; put it there, or unset the variable."
            )
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
                self._reader_id_and_width[0],
                self.ledger,
                self.settings.facts,
            )
        )

    @part
    def _reader_id_and_width(self) -> tuple[str, int]:
        """The model's reader, so that a question about stored evidence opens none; without a model
        the workspace's own."""
        if self.model is not None and self.model.config.reader_id:
            return self.model.config.reader_id, self.model.config.encoder.input_width
        return self.reader.reader_id, self.reader.width

    def invalidate(self, *names: str) -> None:
        """Parts that are out of date; what they are made of next time is what there is then."""
        for name in names:
            self.__dict__.pop(name, None)

    def close(self) -> None:
        """Writes what is pending and closes what is open. A closed workspace answers no more."""
        with ExitStack() as stack:
            for name in ("database", "cache", "ledger"):  # the last is closed first
                if name in vars(self):
                    stack.callback(getattr(self, name).close)
            self.is_closed = True
            self.invalidate(
                *(name for name in vars(Wiring) if isinstance(vars(Wiring)[name], part))
            )
