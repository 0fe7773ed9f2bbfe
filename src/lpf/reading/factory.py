"""Open a reader by its name in a settings file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

from lpf.errors import ConfigError
from lpf.reading.graph import Precision
from lpf.reading.minilm import MiniLMReader
from lpf.reading.pair import PairReader
from lpf.reading.reader import Reader
from lpf.reading.sentence_transformer import SentenceTransformerReader
from lpf.reading.stance import StanceReader, stance_is_installed


class ReaderKind(NamedTuple):
    """How to open a reader: ``open`` takes its ``settings``, those of ``open_reader`` by name."""

    open: Callable[..., Reader]
    settings: tuple[str, ...] = ()


# A name that ends with a colon is followed by a model's name, the first argument of ``open``.
READERS: Mapping[str, ReaderKind] = {
    "minilm": ReaderKind(MiniLMReader, ("precision", "cache_dir", "threads", "passages")),
    "sentence-transformers:": ReaderKind(SentenceTransformerReader),
}


def open_reader(
    name: str = "minilm",
    *,
    precision: Precision | None = None,
    cache_dir: Path | str | None = None,
    threads: int | None = None,
    passages: bool | None = None,
    with_claim: bool = False,
) -> Reader:
    """Open ``"minilm"``, or ``"sentence-transformers:NAME"`` with a model's folder or hub name.

    A long text is read in passages; with ``passages=False`` it is cut, as in earlier versions. With
    ``with_claim`` each text is read together with its claim (see ``claim_reader``). Raises
    ConfigError for an unknown name, or for a setting that the named reader does not have.
    """
    check_reader_name(name)
    kind_name, model = _parts(name)
    kind = READERS[kind_name]
    settings = {
        "precision": precision,
        "cache_dir": cache_dir,
        "threads": threads,
        "passages": passages,
    }
    given = {setting: value for setting, value in settings.items() if value is not None}
    surplus = sorted(given.keys() - set(kind.settings))
    if surplus:
        having = [repr(one) for one in READERS if set(surplus) <= set(READERS[one].settings)]
        raise ConfigError(
            f"not supported by the reader {name!r}, only by {', '.join(having)}.",
            field=", ".join(surplus),
        )
    reader = kind.open(*([model] if model else []), **given)
    return claim_reader(reader, cache_dir, threads) if with_claim else reader


def claim_reader(
    text_reader: Reader, cache_dir: Path | str | None = None, threads: int | None = None
) -> PairReader:
    """A reader of texts with their claims. It also reads the text's stance towards the claim if the
    weights for that are installed; its ID says whether it does."""
    stance = StanceReader(cache_dir=cache_dir, threads=threads) if stance_is_installed() else None
    return PairReader(text_reader, stance)


def check_reader_name(name: str) -> None:
    """Raise ConfigError for an unknown reader name."""
    kind, model = _parts(name)
    if kind not in READERS or kind.endswith(":") != bool(model):
        known = " or ".join(f'"{one}NAME"' if one.endswith(":") else f'"{one}"' for one in READERS)
        raise ConfigError(f"must be {known}, got {name!r}.", field="reader")


def _parts(name: str) -> tuple[str, str]:
    """The key of ``READERS``, and the model's name after the colon."""
    kind, colon, model = name.partition(":")
    return kind + colon, model
