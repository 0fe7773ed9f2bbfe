"""FEVER's official files as a data set: claims, and the Wikipedia sentences they cite.

FEVER's copy of Wikipedia: ``wiki-001.jsonl`` and so on, one page a line.

FEVER's files of claims: ``train.jsonl``, ``shared_task_dev.jsonl`` and so on.

Claims that must not be split: those that share a page, directly or over other claims.
"""

from __future__ import annotations

import hashlib
import heapq
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from lpf.datasets.dataset import Dataset, DatasetEntity, DatasetItem, Split
from lpf.datasets.dataset_file import NO_LABEL, Exclusions, object_lines
from lpf.datasets.json_fields import FieldError, Record, shown
from lpf.errors import ConfigError, DatasetError
from lpf.schema import Predicate, Schema

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


NOT_ENOUGH_INFO = "NOT ENOUGH INFO"
_FORM = "Write a list of evidence sets, each a list of [annotation id, evidence id, page, number]."
Citation = tuple[str, int]


@dataclass(frozen=True, slots=True)
class FeverClaim:
    """A claim and what all its evidence sets cite: page and number of the sentence, each once. The
    label is FEVER's; None in its blind test file."""

    line: int
    fever_id: str
    text: str
    label: str | None
    citations: tuple[Citation, ...]

    @property
    def place(self) -> str:
        return f"claim {self.fever_id}, line {self.line}"


def read_claims(path: Path, labels: Collection[str]) -> list[FeverClaim]:
    """DatasetError where a line is not in FEVER's form, has none of the ``labels``, or an id that
    came before."""
    claims: dict[str, FeverClaim] = {}
    for line, values in object_lines(path):
        try:
            claim = _claim(line, values, labels)
            if claim.fever_id in claims:
                before = claims[claim.fever_id].line
                raise FieldError(
                    "id",
                    f"{shown(claim.fever_id)} stands already in line {before}",
                    "Give every claim an id of its own.",
                )
        except FieldError as error:
            raise DatasetError(
                f"{path}, line {line}: {error}. Nothing was read. {error.remedy}"
            ) from error
        claims[claim.fever_id] = claim
    if not claims:
        raise DatasetError(f"{path}: is empty. Nothing was read. Write one claim a line.")
    return list(claims.values())


def _claim(line: int, values: Mapping[str, object], labels: Collection[str]) -> FeverClaim:
    record = Record(values)
    label = record.identifier("label")
    if label is not None and label not in labels:
        raise record.error(
            "label", f"{shown(label)} is none of {list(labels)}", "Use FEVER's own labels."
        )
    citations = tuple(dict.fromkeys(_citations(record)))
    return FeverClaim(
        line, record.required_identifier("id"), record.required_text("claim"), label, citations
    )


def _citations(record: Record) -> Iterator[Citation]:
    """In the order of the file. A claim that is NOT ENOUGH INFO has nulls in their place."""
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
                        f"evidence[{outer}][{inner}]", f"is no citation: {shown(cited)}", _FORM
                    )


def _listed(record: Record, value: object, field: str) -> list[object]:
    if not isinstance(value, list):
        raise record.error(field, f"must be a list, got {shown(value)}", _FORM)
    return value


def page_groups(pages: Sequence[Set[str]]) -> list[str]:
    """The group of each claim, for the pages it cites (at least one): the page where its group has
    no other, else a hash of all pages of the group, whatever their order."""
    first: dict[str, str] = {}
    for cited in pages:
        _join(first, sorted(cited))
    members: dict[str, list[str]] = {}
    for page in sorted(first):
        members.setdefault(_root(first, page), []).append(page)
    names = {root: _name(together) for root, together in members.items()}
    return [names[_root(first, min(cited))] for cited in pages]


def _join(first: dict[str, str], pages: Sequence[str]) -> None:
    root = _root(first, pages[0])
    for page in pages[1:]:
        first[_root(first, page)] = root


def _root(first: dict[str, str], page: str) -> str:
    """The page that stands for all it was joined with; the way there is halved for the next."""
    first.setdefault(page, page)
    while first[page] != page:
        first[page] = first[first[page]]
        page = first[page]
    return page


def _name(pages: Sequence[str]) -> str:
    if len(pages) == 1:
        return pages[0]
    return hashlib.blake2b("\n".join(pages).encode(), digest_size=8).hexdigest()


_LEFT_OUT = (
    f"claim is {NOT_ENOUGH_INFO}, cites no evidence and was left out",
    f"claims are {NOT_ENOUGH_INFO}, cite no evidence and were left out",
)
_SAMPLED = (
    f"claim is {NOT_ENOUGH_INFO} and was given sentences of a random page",
    f"claims are {NOT_ENOUGH_INFO} and were given sentences of random pages",
)
_NO_PAGES = (
    f"claim is {NOT_ENOUGH_INFO} and was left out, since the wiki files have no page to draw",
    f"claims are {NOT_ENOUGH_INFO} and were left out, since the wiki files have no page to draw",
)
_NO_PAGE = (
    "cited sentence was left out, since its page is not in the wiki files",
    "cited sentences were left out, since their pages are not in the wiki files",
)
_NO_SENTENCE = (
    "cited sentence was left out, since its page has none of that number",
    "cited sentences were left out, since their pages have none of that number",
)
_NOTHING_FOUND = (
    "claim has none of the sentences it cites and was left out",
    "claims have none of the sentences they cite and were left out",
)


@dataclass(frozen=True, slots=True)
class Quote:
    """A sentence of a page."""

    page: str
    text: str


@dataclass(frozen=True, slots=True)
class FeverLabels:
    """What FEVER's labels are called here: the predicate, and its value for each of them in the
    order in which the predicate has them."""

    predicate: str
    values: Mapping[str, str]

    def schema(self, not_enough_info: bool) -> Schema:
        """Without claims that are NOT ENOUGH INFO their value is no answer either."""
        kept = [
            v for label, v in self.values.items() if not_enough_info or label != NOT_ENOUGH_INFO
        ]
        return Schema((Predicate(self.predicate, tuple(kept)),))


PAPER_LABELS = FeverLabels(
    "compliance_level", {"REFUTES": "low", NOT_ENOUGH_INFO: "medium", "SUPPORTS": "high"}
)
FEVER_LABELS = FeverLabels("verdict", {label: label for label in PAPER_LABELS.values})


def read_fever(
    claims: str | Path,
    wiki: str | Path | Iterable[str | Path],
    *,
    mapping: FeverLabels = PAPER_LABELS,
    split: Split | None = None,
    nei: Literal["leave_out", "sample"] = "leave_out",
    seed: int | None = None,
) -> Dataset:
    """Claims with the sentences that all their evidence sets cite, each once.

    ``wiki`` is the folder of FEVER's pages, or its files. Claims that are NOT ENOUGH INFO cite
    nothing: they are left out, and the predicate has no value for them, or with ``nei="sample"``
    and a ``seed`` they get sentences of random pages. Claims that share a page share a group.
    """
    path = Path(claims)
    seed = _checked_seed(nei, seed)
    exclusions = Exclusions()
    found = [c for c in read_claims(path, mapping.values) if _is_wanted(c, nei, exclusions)]
    open_claims = [claim for claim in found if claim.label == NOT_ENOUGH_INFO]
    cited = {page for claim in found for page, _ in claim.citations}
    pages = read_pages(wiki_files(wiki), cited, draw=len(open_claims), seed=seed)
    quotes = {
        c.fever_id: _quotes(c, pages, exclusions) for c in found if c.label != NOT_ENOUGH_INFO
    }
    quotes |= _drawn_quotes(open_claims, pages, quotes, seed, exclusions)
    entities = _entities([c for c in found if quotes.get(c.fever_id)], quotes, mapping, split)
    if not entities:
        raise DatasetError(
            f"{path}: no claim has both a label and evidence. Nothing was read. "
            + " ".join(exclusions.sentences)
        )
    return Dataset(path.stem, mapping.schema(nei == "sample"), entities, exclusions.sentences)


def _checked_seed(nei: str, seed: int | None) -> int:
    if nei not in ("leave_out", "sample"):
        raise ConfigError(f"nei: must be 'leave_out' or 'sample', got {nei!r}.")
    if (nei == "sample") != (seed is not None):
        raise ConfigError(f"seed: nei='sample' needs one, nothing else uses it; got {seed!r}.")
    return 0 if seed is None else seed


def _is_wanted(claim: FeverClaim, nei: str, exclusions: Exclusions) -> bool:
    if claim.label is None:
        exclusions.note(NO_LABEL, claim.place)
        return False
    if claim.label == NOT_ENOUGH_INFO and nei != "sample":
        exclusions.note(_LEFT_OUT, claim.place)
        return False
    return True


def _quotes(claim: FeverClaim, pages: Pages, exclusions: Exclusions) -> list[Quote]:
    """The sentences a claim cites, as far as they are there."""
    quotes = []
    for page, number in claim.citations:
        text = pages.cited.get(page, {}).get(number)
        if text is not None:
            quotes.append(Quote(page, text))
        else:
            kind = _NO_SENTENCE if page in pages.cited else _NO_PAGE
            exclusions.note(kind, f"{page}, sentence {number}, of {claim.place}")
    if not quotes:
        exclusions.note(_NOTHING_FOUND, claim.place)
    return quotes


def _drawn_quotes(
    claims: Sequence[FeverClaim],
    pages: Pages,
    cited: Mapping[str, Sequence[Quote]],
    seed: int,
    exclusions: Exclusions,
) -> dict[str, list[Quote]]:
    """A page for each claim, taken again from the first where there are fewer, and as many of its
    sentences as some other claim has, so that their number does not give the label away."""
    generator = np.random.Generator(np.random.PCG64(seed))
    counts = [len(quotes) for quotes in cited.values() if quotes] or [1]
    drawn: dict[str, list[Quote]] = {}
    for number, claim in enumerate(claims):
        if not pages.drawn:
            exclusions.note(_NO_PAGES, claim.place)
            continue
        page, sentences = pages.drawn[number % len(pages.drawn)]
        count = min(counts[generator.integers(len(counts))], len(sentences))
        numbers = generator.choice(sorted(sentences), count, replace=False)
        drawn[claim.fever_id] = [Quote(page, sentences[place]) for place in sorted(numbers)]
        exclusions.note(_SAMPLED, claim.place)
    return drawn


def _entities(
    claims: Sequence[FeverClaim],
    quotes: Mapping[str, Sequence[Quote]],
    mapping: FeverLabels,
    split: Split | None,
) -> tuple[DatasetEntity, ...]:
    groups = page_groups([{quote.page for quote in quotes[c.fever_id]} for c in claims])
    return tuple(
        DatasetEntity(
            entity_id=f"FEVER_{claim.fever_id}",
            labels={mapping.predicate: mapping.values[claim.label]},
            evidence=_items(f"FEVER_{claim.fever_id}", quotes[claim.fever_id]),
            claim=claim.text,
            split=split,
            group_id=group,
            fields={"fever_label": claim.label},
        )
        for claim, group in zip(claims, groups, strict=True)
        if claim.label is not None
    )


def _items(entity_id: str, quotes: Sequence[Quote]) -> tuple[DatasetItem, ...]:
    return tuple(
        DatasetItem(f"{entity_id}_E{number:03d}", quote.text, source=page_title(quote.page))
        for number, quote in enumerate(quotes, 1)
    )
