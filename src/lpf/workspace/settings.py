"""``lpf.toml``: the settings of a workspace, read and checked."""

from __future__ import annotations

import getpass
import math
import os
import socket
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from lpf.errors import ConfigError, LPFError, WorkspaceError
from lpf.factors.convert import ConversionConfig
from lpf.index import DEFAULT_SIMILARITY, IndexConfig, RankingConfig
from lpf.orchestrator import FactPolicy
from lpf.reading.factory import check_reader_name
from lpf.schema import Schema
from lpf.storage.database import DEFAULT_BUSY_SECONDS
from lpf.storage.values import length_problem, name_problem
from lpf.types import QueryOptions

FILE_NAME = "lpf.toml"
SQLITE = "sqlite:///"
STORE_VARIABLE, CACHE_VARIABLE, KEY_VARIABLE = "LPF_STORE_URL", "LPF_CACHE_URL", "LPF_LEDGER_KEY"
USER_VARIABLE = "LPF_USER"
Section = TypeVar("Section")


def user_and_host() -> str:
    """``ann@laptop``; the number of a user without a name."""
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # no such user in this container
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def check_asked_by(name: str, field: str) -> None:
    """Raise ConfigError for a name that a record cannot hold."""
    problem = name_problem(name) or length_problem(name, "asked_by")
    if problem:
        raise ConfigError(f"{problem}.", field=field)


@dataclass(frozen=True)
class ReaderSettings:
    """The reader that turns texts into features. ``with_claim`` says if each text is read with its
    claim; ``"auto"``: if the data that a model is trained on has claims. With
    ``description_as_claim``, the description of the only predicate is the claim of evidence that
    comes without one, if it is a question or a statement. ``lpf init`` writes it where it applies;
    a workspace from before does not have it."""

    name: str = "minilm"
    with_claim: bool | Literal["auto"] = "auto"
    description_as_claim: bool = False

    def __post_init__(self) -> None:
        check_reader_name(self.name)
        if isinstance(self.with_claim, str) and self.with_claim != "auto":
            raise ConfigError(
                f'must be true, false or "auto", got {self.with_claim!r}.', field="with_claim"
            )


@dataclass(frozen=True)
class StoreSettings:
    """A relative SQLite path is relative to the workspace's folder."""

    url: str = f"{SQLITE}store.db"
    busy_seconds: float = DEFAULT_BUSY_SECONDS

    def __post_init__(self) -> None:
        _require(0 < self.busy_seconds < math.inf, "store.busy_seconds", self.busy_seconds)


@dataclass(frozen=True)
class CacheSettings:
    """``url`` is ``memory``, ``off``, or the address of a Redis server."""

    url: str = "memory"
    ttl_seconds: int = 7 * 86_400

    def __post_init__(self) -> None:
        _require(self.ttl_seconds > 0, "cache.ttl_seconds", self.ttl_seconds)


@dataclass(frozen=True)
class IndexSettings:
    """Texts with at least this cosine similarity are copies; 0 turns this off."""

    copy_similarity: float = DEFAULT_SIMILARITY


@dataclass(frozen=True)
class LedgerSettings:
    """The file with the signing key, how often a checkpoint is signed, and what records say about
    who asked: a name, an empty text for nothing, or by default user and host."""

    key: str = "keys/ledger.key"
    checkpoint_seconds: float = 1.0
    asked_by: str | None = None

    def __post_init__(self) -> None:
        if self.asked_by:
            check_asked_by(self.asked_by, "ledger.asked_by")
        _require(
            0 < self.checkpoint_seconds < math.inf,
            "ledger.checkpoint_seconds",
            self.checkpoint_seconds,
        )


@dataclass(frozen=True)
class Settings:
    """The settings of a workspace, checked. ``query`` has the default options of a question."""

    folder: Path
    schema: Schema
    _: KW_ONLY
    reader: ReaderSettings = field(default_factory=ReaderSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    index: IndexSettings = field(default_factory=IndexSettings)
    ranking: RankingConfig = field(default_factory=RankingConfig)
    vectors: IndexConfig = field(default_factory=IndexConfig)
    facts: FactPolicy = field(default_factory=FactPolicy)
    ledger: LedgerSettings = field(default_factory=LedgerSettings)
    query: QueryOptions = field(default_factory=QueryOptions)

    @property
    def store_address(self) -> str | Path:
        """From the environment variable if set, else from the settings. A file in the folder is
        returned as a path, since its name may have characters with a meaning in URLs."""
        url = os.environ.get(STORE_VARIABLE) or self.store.url
        relative = url.startswith(SQLITE) and not url.startswith(f"{SQLITE}/")
        return self.folder / url.removeprefix(SQLITE) if relative else url

    @property
    def cache_url(self) -> str:
        return os.environ.get(CACHE_VARIABLE) or self.cache.url

    @property
    def asked_by(self) -> str | None:
        """Who asks, for the record: the environment variable if set, else the settings, else user
        and host. None if the settings turn it off, which the variable does not change."""
        if self.ledger.asked_by == "":
            return None
        named = os.environ.get(USER_VARIABLE)
        if named:
            check_asked_by(named, USER_VARIABLE)
        return named or self.ledger.asked_by or user_and_host()

    @property
    def key_file(self) -> Path:
        return self.folder / (os.environ.get(KEY_VARIABLE) or self.ledger.key)


def read_settings(folder: Path) -> Settings:
    """Read the settings of a workspace. WorkspaceError names the file and the field."""
    path = folder / FILE_NAME
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{path}: cannot be read ({error}). Nothing was opened.") from error
    except (ValueError, RecursionError) as error:  # also numbers and nesting that are too long
        raise WorkspaceError(f"{path}: not valid TOML: {error}. Nothing was opened.") from error
    try:
        return settings_from(folder, document)
    except LPFError as error:
        where = str(path) if error.field is None else f"{path}: {error.field}"
        raise WorkspaceError(error.message, field=where, hint=error.hint) from error


def settings_from(folder: Path, document: Mapping[str, Any]) -> Settings:
    """Settings from plain data; an error names the field."""
    rest = dict(document)
    schema = Schema.from_dict({key: rest.pop(key, []) for key in ("predicates", "relations")})
    index = dict(_table(rest.pop("index", {}), "index"))
    sections: dict[str, Any] = {
        "ranking": _section(RankingConfig, index.pop("ranking", {}), "index.ranking"),
        "vectors": _section(IndexConfig, index.pop("vectors", {}), "index.vectors"),
        "index": _section(IndexSettings, index, "index"),
    }
    kinds = {
        "reader": ReaderSettings,
        "store": StoreSettings,
        "cache": CacheSettings,
        "facts": FactPolicy,
        "ledger": LedgerSettings,
        "query": QueryOptions,
    }
    for name, kind in kinds.items():
        sections[name] = _section(kind, rest.pop(name, {}), name)
    _check_sampler(sections["query"])
    if rest:
        known = sorted([*kinds, "index", "predicates", "relations"])
        raise ConfigError(f"unknown section; the sections are {known}.", field=min(rest))
    return Settings(folder, schema, **sections)


def _check_sampler(query: QueryOptions) -> None:
    if query.sampler is not None or query.n_samples is not None:
        with _fields_of("query"):
            ConversionConfig(query.sampler or "plain", query.n_samples)


def _section(kind: type[Section], entry: Any, name: str) -> Section:
    table = _table(entry, name)
    known = get_type_hints(kind)
    for key, value in table.items():
        if key not in known:
            raise ConfigError(
                f"unknown field; the fields are {sorted(known)}.", field=f"{name}.{key}"
            )
        _check_type(value, known[key], f"{name}.{key}")
    checked = {
        key: _as_declared(value, known[key], f"{name}.{key}") for key, value in table.items()
    }
    with _fields_of(name):
        return kind(**checked)


def _as_declared(value: Any, hint: Any, name: str) -> Any:
    """A whole number as a float where the field is one."""
    if type(value) is not int or int in (hint, *get_args(hint)):
        return value
    try:
        return float(value)
    except OverflowError:
        raise ConfigError("is too large for a number with decimals.", field=name) from None


@contextmanager
def _fields_of(section: str) -> Iterator[None]:
    """Name the field in errors as the file does: query.top_k, not options.top_k."""
    try:
        yield
    except ConfigError as error:
        if error.field is not None:
            error.field = f"{section}.{error.field.rpartition('.')[2]}"
        raise


def _check_type(value: Any, hint: Any, name: str) -> None:
    """Raise ConfigError now for a value of the wrong type, not at the first question."""
    allowed = [_plain(kind) for kind in (get_args(hint) if _is_union(hint) else (hint,))]
    is_whole_number = float in allowed and type(value) is int
    if type(value) not in allowed and not is_whole_number:
        kinds = " or ".join(kind.__name__ for kind in allowed if kind is not NoneType)
        # An address may hold a password.
        got = f"a {type(value).__name__}" if name.endswith("url") else repr(value)
        raise ConfigError(f"must be of type {kinds}, got {got}.", field=name)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (UnionType, Union)


def _plain(hint: Any) -> type:
    """The type of a field; a choice of literals is a text."""
    return str if get_origin(hint) is Literal else hint


def _require(holds: bool, name: str, value: float) -> None:
    if not holds:
        raise ConfigError(f"must be a number above 0, got {value!r}.", field=name)


def _table(entry: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"must be a table ([{name}]), got {entry!r}.", field=name)
    return entry
