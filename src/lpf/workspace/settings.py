"""``lpf.toml``: what a workspace is made of."""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
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
from lpf.types import QueryOptions

FILE_NAME = "lpf.toml"
SQLITE = "sqlite:///"
STORE_VARIABLE, CACHE_VARIABLE, KEY_VARIABLE = "LPF_STORE_URL", "LPF_CACHE_URL", "LPF_LEDGER_KEY"
Section = TypeVar("Section")


@dataclass(frozen=True)
class ReaderSettings:
    """Which reader turns texts into features; ``with_claim`` reads each against its claim."""

    name: str = "minilm"
    with_claim: bool = False

    def __post_init__(self) -> None:
        check_reader_name(self.name)


@dataclass(frozen=True)
class StoreSettings:
    """A relative SQLite path is relative to the workspace's folder."""

    url: str = f"{SQLITE}store.db"
    busy_seconds: float = DEFAULT_BUSY_SECONDS

    def __post_init__(self) -> None:
        _require(0 < self.busy_seconds < math.inf, "store.busy_seconds", self.busy_seconds)


@dataclass(frozen=True)
class CacheSettings:
    """``memory``, ``off``, or the address of a Redis."""

    url: str = "memory"
    ttl_seconds: int = 7 * 86_400

    def __post_init__(self) -> None:
        _require(self.ttl_seconds > 0, "cache.ttl_seconds", self.ttl_seconds)


@dataclass(frozen=True)
class IndexSettings:
    """From which cosine on two texts are copies; 0 for never."""

    copy_similarity: float = DEFAULT_SIMILARITY


@dataclass(frozen=True)
class LedgerSettings:
    """Where the signing key lies, and how often a checkpoint is signed."""

    key: str = "keys/ledger.key"
    checkpoint_seconds: float = 1.0

    def __post_init__(self) -> None:
        _require(
            0 < self.checkpoint_seconds < math.inf,
            "ledger.checkpoint_seconds",
            self.checkpoint_seconds,
        )


@dataclass(frozen=True)
class Settings:
    """A workspace's settings, checked. ``query`` holds the defaults of a question."""

    folder: Path
    schema: Schema
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
        """The environment's, else the file's; the path itself where it is a file in the folder,
        whose name may hold what an address would take for something else."""
        url = os.environ.get(STORE_VARIABLE) or self.store.url
        relative = url.startswith(SQLITE) and not url.startswith(f"{SQLITE}/")
        return self.folder / url.removeprefix(SQLITE) if relative else url

    @property
    def cache_url(self) -> str:
        return os.environ.get(CACHE_VARIABLE) or self.cache.url

    @property
    def key_file(self) -> Path:
        return self.folder / (os.environ.get(KEY_VARIABLE) or self.ledger.key)


def read_settings(folder: Path) -> Settings:
    """The settings of a workspace. WorkspaceError names file and field."""
    path = folder / FILE_NAME
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except tomllib.TOMLDecodeError as error:
        raise WorkspaceError(f"{path}: not valid TOML: {error}. Nothing was opened.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise WorkspaceError(f"{path}: cannot be read ({error}). Nothing was opened.") from error
    try:
        return settings_from(folder, document)
    except LPFError as error:
        raise WorkspaceError(f"{path}: {error}") from error


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
        raise ConfigError(f"{sorted(rest)[0]}: unknown section; the sections are {known}.")
    return Settings(folder, schema, **sections)


def _check_sampler(query: QueryOptions) -> None:
    if query.sampler is not None or query.n_samples is not None:
        ConversionConfig(query.sampler or "plain", query.n_samples)


def _section(kind: type[Section], entry: Any, name: str) -> Section:
    table = _table(entry, name)
    known = get_type_hints(kind)
    for key, value in table.items():
        if key not in known:
            raise ConfigError(f"{name}.{key}: unknown field; the fields are {sorted(known)}.")
        _check_type(value, known[key], f"{name}.{key}")
    return kind(**table)


def _check_type(value: Any, hint: Any, name: str) -> None:
    """A number where a text belongs must not be found out at the first question."""
    allowed = [_plain(one) for one in (get_args(hint) if _is_union(hint) else (hint,))]
    whole = float in allowed and type(value) is int
    if type(value) not in allowed and not whole:
        kinds = " or ".join(one.__name__ for one in allowed if one is not NoneType)
        raise ConfigError(f"{name}: must be of type {kinds}, got {value!r}.")


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (UnionType, Union)


def _plain(hint: Any) -> type:
    """The type of a field; a choice of literals is a text."""
    return str if get_origin(hint) is Literal else hint


def _require(holds: bool, name: str, value: float) -> None:
    if not holds:
        raise ConfigError(f"{name}: must be a number above 0, got {value!r}.")


def _table(entry: Any, name: str) -> Mapping[str, Any]:
    if not isinstance(entry, Mapping):
        raise ConfigError(f"{name}: must be a table ([{name}]), got {entry!r}.")
    return entry
