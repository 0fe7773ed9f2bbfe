"""Open a reader by its name in a settings file."""

from __future__ import annotations

from pathlib import Path

from lpf.errors import ConfigError
from lpf.reading.graph import Precision
from lpf.reading.minilm import MiniLMReader
from lpf.reading.pair import PairReader
from lpf.reading.reader import Reader
from lpf.reading.sentence_transformer import SentenceTransformerReader

OTHER_MODEL = "sentence-transformers:"


def open_reader(
    name: str = "minilm",
    *,
    precision: Precision | None = None,
    cache_dir: Path | str | None = None,
    threads: int | None = None,
    with_claim: bool = False,
) -> Reader:
    """Open ``"minilm"``, or ``"sentence-transformers:NAME"`` with a model's folder or hub name.

    With ``with_claim`` each text is read together with its claim (see PairReader). Raises
    ConfigError for an unknown name, or for a setting that the named reader does not have.
    """
    check_reader_name(name)
    settings = {"precision": precision, "cache_dir": cache_dir, "threads": threads}
    given = sorted(key for key, value in settings.items() if value is not None)
    reader: Reader
    if name == "minilm":
        reader = MiniLMReader(
            precision=precision or "float32", cache_dir=cache_dir, threads=threads
        )
    else:
        if given:
            raise ConfigError(
                f"not supported by the reader {name!r}, only by 'minilm'.", field=", ".join(given)
            )
        reader = SentenceTransformerReader(name.removeprefix(OTHER_MODEL))
    return PairReader(reader) if with_claim else reader


def check_reader_name(name: str) -> None:
    """Raise ConfigError for an unknown reader name."""
    if (name != "minilm" and not name.startswith(OTHER_MODEL)) or name == OTHER_MODEL:
        raise ConfigError(f'must be "minilm" or "{OTHER_MODEL}NAME", got {name!r}.', field="reader")
