"""FEVER as a data set: claims, and the Wikipedia sentences they cite."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from lpf.datasets.dataset import Dataset, DatasetEntity, DatasetItem, Split
from lpf.datasets.dataset_file import NO_LABEL, Exclusions
from lpf.datasets.fever_files import (
    NOT_ENOUGH_INFO,
    FeverClaim,
    Pages,
    page_title,
    read_claims,
    read_pages,
    wiki_files,
)
from lpf.errors import ConfigError, DatasetError
from lpf.schema import Predicate, Schema

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
    """A sentence and its page."""

    page: str
    text: str


@dataclass(frozen=True, slots=True)
class FeverLabels:
    """How FEVER's labels are mapped: the predicate, and its value for each label, in the order of
    the predicate's values."""

    predicate: str
    values: Mapping[str, str]

    def schema(self, not_enough_info: bool) -> Schema:
        """Return the schema, with or without the value for NOT ENOUGH INFO."""
        values = [
            v for label, v in self.values.items() if not_enough_info or label != NOT_ENOUGH_INFO
        ]
        return Schema((Predicate(self.predicate, tuple(values)),))


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
    """Read claims with the sentences that their evidence sets cite.

    ``wiki`` is the folder with FEVER's pages, or its files. Claims that are NOT ENOUGH INFO cite
    nothing: they are left out, and the predicate has no value for them; with ``nei="sample"`` and a
    ``seed`` they get sentences of random pages instead. Claims that share a page are in one group.
    """
    path = Path(claims)
    seed = _checked_seed(nei, seed)
    exclusions = Exclusions()
    wanted = [c for c in read_claims(path, mapping.values) if _is_wanted(c, nei, exclusions)]
    without_evidence = [claim for claim in wanted if claim.label == NOT_ENOUGH_INFO]
    cited = {page for claim in wanted for page, _ in claim.citations}
    pages = read_pages(wiki_files(wiki), cited, draw=len(without_evidence), seed=seed)
    quotes = {
        c.fever_id: _quotes(c, pages, exclusions) for c in wanted if c.label != NOT_ENOUGH_INFO
    }
    quotes |= _drawn_quotes(without_evidence, pages, quotes, seed, exclusions)
    entities = _entities([c for c in wanted if quotes.get(c.fever_id)], quotes, mapping, split)
    if not entities:
        raise DatasetError(
            f"{path}: no claim has both a label and evidence. Nothing was read.",
            hint=" ".join(exclusions.sentences),
        )
    return Dataset(path.stem, mapping.schema(nei == "sample"), entities, exclusions.sentences)


def _checked_seed(nei: str, seed: int | None) -> int:
    if nei not in ("leave_out", "sample"):
        raise ConfigError(f"must be 'leave_out' or 'sample', got {nei!r}.", field="nei")
    if (nei == "sample") != (seed is not None):
        raise ConfigError(
            f"must be given with nei='sample' and not otherwise, got {seed!r}.", field="seed"
        )
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
    """Return the sentences that a claim cites, as far as they exist."""
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
    """Return random sentences for claims without evidence.

    Each claim gets a page (pages repeat if there are too few) and as many of its sentences as some
    other claim has, so that their number does not reveal the label.
    """
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


def page_groups(pages: Sequence[Set[str]]) -> list[str]:
    """Return the group of each claim from the pages it cites (at least one).

    Claims that share a page are in the same group, directly or through other claims. A group is
    named by its page, or by a hash of its pages.
    """
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
    """Return the representative of a page (union-find with path halving)."""
    first.setdefault(page, page)
    while first[page] != page:
        first[page] = first[first[page]]
        page = first[page]
    return page


def _name(pages: Sequence[str]) -> str:
    if len(pages) == 1:
        return pages[0]
    return hashlib.blake2b("\n".join(pages).encode(), digest_size=8).hexdigest()
