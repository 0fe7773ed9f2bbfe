"""Read FEVER's official files.

Claims come from ``train.jsonl``, ``shared_task_dev.jsonl`` and so on; pages from FEVER's copy of
Wikipedia, ``wiki-001.jsonl`` and so on, one page per line.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path

from lpf.datasets.dataset_file import line_error, object_lines
from lpf.datasets.json_fields import FieldError, JsonObject, shortened
from lpf.errors import DatasetError

NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
_FORM = "Write a list of evidence sets, each a list of [annotation id, evidence id, page, number]."
Citation = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FeverClaim:
    """A claim and the sentences (page, number) that its evidence sets cite, without duplicates.

    ``label`` is FEVER's; None in its blind test file.
    """

    line: int
    fever_id: str
    text: str
    label: str | None
    citations: tuple[Citation, ...]

    @property
    def place(self) -> str:
        return f"claim {self.fever_id}, line {self.line}"


def read_claims(path: Path, labels: Collection[str]) -> list[FeverClaim]:
    """Read all claims. DatasetError if a line is not in FEVER's format, has an unknown label, or
    repeats an id."""
    claims: dict[str, FeverClaim] = {}
    for line, values in object_lines(path):
        try:
            claim = _claim(line, values, labels)
            if claim.fever_id in claims:
                before = claims[claim.fever_id].line
                raise FieldError(
                    "id",
                    f"{shortened(claim.fever_id)} is already used in line {before}",
                    "Give every claim a unique id.",
                )
        except FieldError as error:
            raise line_error(path, line, error) from error
        claims[claim.fever_id] = claim
    if not claims:
        raise DatasetError(f"{path} is empty. Nothing was read.", hint="Write one claim per line.")
    return list(claims.values())


def _claim(line: int, values: Mapping[str, object], labels: Collection[str]) -> FeverClaim:
    record = JsonObject(values)
    label = record.identifier("label")
    if label is not None and label not in labels:
        raise record.error(
            "label",
            f"unknown label {shortened(label)}; choose from {list(labels)}",
            "Use FEVER's labels.",
        )
    citations = tuple(dict.fromkeys(_citations(record)))
    return FeverClaim(
        line, record.required_identifier("id"), record.required_text("claim"), label, citations
    )


def _citations(record: JsonObject) -> Iterator[Citation]:
    """Yield citations in file order. Claims that are NOT ENOUGH INFO have nulls instead."""
    given = record.values.get("evidence")
    sets = [] if given is None else _listed(record, given, "evidence")
    for outer, evidence_set in enumerate(sets):
        for inner, cited in enumerate(_listed(record, evidence_set, f"evidence[{outer}]")):
            match cited:
                case [_, _, str(page), int(number)]:
                    yield page_name(page), number
                case [_, _, None, None]:
                    pass
                case _:
                    raise record.error(
                        f"evidence[{outer}][{inner}]",
                        f"is not a citation: {shortened(cited)}",
                        _FORM,
                    )


def _listed(record: JsonObject, value: object, field: str) -> list[object]:
    if not isinstance(value, list):
        raise record.error(field, f"must be a list, got {shortened(value)}", _FORM)
    return value


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
    """Sentences of the cited pages, by page and number, and of randomly drawn pages."""

    cited: Mapping[str, Sentences]
    drawn: Sequence[tuple[str, Sentences]]


@dataclass(slots=True)
class _Draw:
    """Selects the pages whose hash with the seed is smallest: a random sample that does not depend
    on the order of pages and files."""

    size: int
    seed: int
    _selected: list[tuple[int, str, Sentences]] = field(default_factory=list)

    def offer(self, page: str, lines: str) -> None:
        if not self.size:
            return
        hashed = hashlib.blake2b(f"{self.seed}\0{page}".encode(), digest_size=8).digest()
        rank = -int.from_bytes(hashed)  # heapq removes the smallest first
        if len(self._selected) == self.size and rank <= self._selected[0][0]:
            return
        sentences = _sentences(lines)
        if sentences:
            change = heapq.heappush if len(self._selected) < self.size else heapq.heapreplace
            change(self._selected, (rank, page, sentences))

    @property
    def pages(self) -> list[tuple[str, Sentences]]:
        return [(page, sentences) for _, page, sentences in sorted(self._selected, reverse=True)]


def read_pages(files: Iterable[Path], cited: Set[str], *, draw: int, seed: int) -> Pages:
    """Read the cited pages that exist, and ``draw`` random pages (which may be cited ones too).

    Other pages do not stay in memory.
    """
    cited_pages: dict[str, Sentences] = {}
    drawn = _Draw(draw, seed)
    for path in files:
        for line, values in object_lines(path):
            page, lines = _page(path, line, values)
            if page in cited:
                cited_pages[page] = _sentences(lines)
            drawn.offer(page, lines)
    return Pages(cited_pages, drawn.pages)


def wiki_files(place: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the .jsonl files of a folder, sorted by name, or the given files."""
    if not isinstance(place, str | Path):
        return [Path(path) for path in place]
    folder = Path(place)
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    if not files:
        raise DatasetError(
            f"{folder} has no .jsonl files. Nothing was read.",
            hint="Give the folder with FEVER's wiki-001.jsonl and so on.",
        )
    return files


def page_name(name: str) -> str:
    """Normalise a page name: FEVER writes some accents in two ways."""
    return unicodedata.normalize("NFC", name)


def page_title(page: str) -> str:
    """Return a readable title: ``Soul Food (film)`` for ``Soul_Food_-LRB-film-RRB-``."""
    return plain_text(page.replace("_", " "))


def plain_text(text: str) -> str:
    """Decode brackets and colons, and collapse white space."""
    return " ".join(_ANY_ENCODED.sub(lambda found: _ENCODED[found[0]], text).split())


def _page(path: Path, line: int, values: Mapping[str, object]) -> tuple[str, str]:
    """Return the name and the lines of a page. The first page of FEVER's files has neither."""
    record = JsonObject(values)
    try:
        return page_name(record.text("id") or ""), record.text("lines") or ""
    except FieldError as error:
        raise line_error(path, line, error) from error


def _sentences(lines: str) -> Sentences:
    """Parse ``0<tab>sentence<tab>link...``; lines without a number or text are skipped."""
    sentences: dict[int, str] = {}
    for line in lines.split("\n"):
        number, _, rest = line.partition("\t")
        text = plain_text(rest.partition("\t")[0])
        if number.isdecimal() and text:
            sentences[int(number)] = text
    return sentences
