"""FEVER's copy of Wikipedia: ``wiki-001.jsonl`` and so on, one page a line."""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from lpf.datasets.fields import FieldError, Record
from lpf.datasets.lines import object_lines
from lpf.errors import DatasetError

Sentences = Mapping[int, str]
_ENCODED = {
    "-LRB-": "(",
    "-RRB-": ")",
    "-LSB-": "[",
    "-RSB-": "]",
    "-LCB-": "{",
    "-RCB-": "}",
    "-COLON-": ":",
}
_ANY_ENCODED = re.compile("|".join(_ENCODED))


@dataclass(frozen=True, slots=True)
class Pages:
    """Sentences by page and number. ``drawn`` are pages drawn at random, in random order."""

    cited: Mapping[str, Sentences]
    drawn: Sequence[tuple[str, Sentences]]


@dataclass(slots=True)
class _Draw:
    """Keeps the pages whose hash with the seed is smallest: a random choice that depends neither on
    the order of the pages nor on how they are spread over files."""

    size: int
    seed: int
    _kept: list[tuple[int, str, Sentences]] = field(default_factory=list)

    def offer(self, page: str, lines: str) -> None:
        if not self.size:
            return
        hashed = hashlib.blake2b(f"{self.seed}\0{page}".encode(), digest_size=8).digest()
        rank = -int.from_bytes(hashed)  # the heap gives up its smallest first
        if len(self._kept) == self.size and rank <= self._kept[0][0]:
            return
        sentences = _sentences(lines)
        if sentences:
            change = heapq.heappush if len(self._kept) < self.size else heapq.heapreplace
            change(self._kept, (rank, page, sentences))

    @property
    def pages(self) -> list[tuple[str, Sentences]]:
        return [(page, sentences) for _, page, sentences in sorted(self._kept, reverse=True)]


def read_pages(files: Iterable[Path], cited: Set[str], *, draw: int, seed: int) -> Pages:
    """The pages in ``cited`` that are there, and ``draw`` others or the same, at random. No more
    than these are kept in memory."""
    found: dict[str, Sentences] = {}
    drawn = _Draw(draw, seed)
    for path in files:
        for line, values in object_lines(path):
            page, lines = _page(path, line, values)
            if page in cited:
                found[page] = _sentences(lines)
            drawn.offer(page, lines)
    return Pages(found, drawn.pages)


def wiki_files(place: str | Path | Iterable[str | Path]) -> list[Path]:
    """The files of a folder in the order of their names, or those given."""
    if not isinstance(place, str | Path):
        return [Path(path) for path in place]
    folder = Path(place)
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    if not files:
        raise DatasetError(
            f"{folder}: has no .jsonl files. Nothing was read. "
            "Give the folder that holds FEVER's wiki-001.jsonl and so on."
        )
    return files


def page_name(name: str) -> str:
    """As claims and pages can be compared: FEVER writes some accents in two ways."""
    return unicodedata.normalize("NFC", name)


def page_title(page: str) -> str:
    """``Soul_Food_-LRB-film-RRB-`` for people: ``Soul Food (film)``."""
    return plain_text(page.replace("_", " "))


def plain_text(text: str) -> str:
    """Brackets and colons as such, and single blanks."""
    return " ".join(_ANY_ENCODED.sub(lambda found: _ENCODED[found[0]], text).split())


def _page(path: Path, line: int, values: Mapping[str, object]) -> tuple[str, str]:
    """Its name and its lines; FEVER's files begin with a page that has neither."""
    record = Record(values)
    try:
        return page_name(record.text("id") or ""), record.text("lines") or ""
    except FieldError as error:
        raise DatasetError(
            f"{path}, line {line}: {error}. Nothing was read. {error.remedy}"
        ) from error


def _sentences(lines: str) -> Sentences:
    """``0<tab>sentence<tab>link...`` by number. What has no number, or no text, is no sentence."""
    found: dict[int, str] = {}
    for line in lines.split("\n"):
        number, _, rest = line.partition("\t")
        text = plain_text(rest.partition("\t")[0])
        if number.isdecimal() and text:
            found[int(number)] = text
    return found
