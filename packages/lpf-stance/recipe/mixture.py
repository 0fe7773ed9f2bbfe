"""The training pairs: which data sets, how many pairs of each, and what is added to them.

A pass takes a stated number of pairs from each data set, so that none dominates, and adds pairs
that suppress shortcuts: evidence of another claim (random, or similar in words) and empty evidence
are neutral, and edits (``edits.py``) teach what data sets lack. Only data sets whose licence allows
redistribution of a model are listed.
"""

from __future__ import annotations

import gzip
import json
import random
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from recipe.edits import NEUTRAL, edited_pair, flipped, names_in

LABELS = ("supports", "refutes", "neutral")
# Pairs of each data set in one pass. Opinions are capped: their stance is agreement, not truth.
PASS = {
    "mnli_dev": 19_000,
    "snli_train_subset": 14_000,
    "fever_train_sample": 9_500,
    "creak_expl": 7_000,
    "cad_snli": 5_000,
    "conflictqa_strategyqa_llm": 5_000,
    "exfever_test_sr": 4_000,
    "feverous_s_dev": 3_800,
    "fm2_devtest": 3_600,
    "negation_nli": 3_000,
    "snli_devtest": 3_000,
    "factcheckgpt_stance": 2_700,
    "ibm_arg30k_stance": 3_000,
    "perspectrum": 3_000,
    "check_covid_traindev": 2_400,
    "arc_stance": 2_400,
    "argkp2021": 2_000,
    "explagraphs": 1_500,
    "breaking_nli": 1_200,
}
# Added pairs, as shares of all pairs of the data sets.
MISMATCHED, EMPTY, EDITED, FLIPPED = 0.16, 0.015, 0.22, 0.12
# Data sets whose evidence is often about the wrong thing in practice get the mismatched pairs.
FACTUAL = (
    "fever_train_sample", "feverous_s_dev", "fm2_devtest", "exfever_test_sr", "creak_expl",
    "check_covid_traindev", "conflictqa_strategyqa_llm", "factcheckgpt_stance", "mnli_dev",
)  # fmt: skip
DEVELOPMENT_SHARE = 50  # one group in this many is kept aside


class Row(NamedTuple):
    claim: str
    evidence: str
    label: int
    group: str


def load(folder: Path, name: str) -> list[Row]:
    with gzip.open(folder / f"{name}.jsonl.gz", "rt", encoding="utf-8") as stream:
        rows = [json.loads(line) for line in stream]
    return [
        Row(row["claim"], row["evidence"], LABELS.index(row["label"]), row["group"]) for row in rows
    ]


def is_development(row: Row) -> bool:
    return zlib.crc32(row.group.encode()) % DEVELOPMENT_SHARE == 0


class Mixture:
    """Pairs of all passes, drawn from one seed; the same pass is always the same pairs."""

    def __init__(self, folder: Path, seed: int = 0, without: tuple[str, ...] = ()) -> None:
        self._seed = seed
        self._rows: dict[str, list[Row]] = {}
        self.development: dict[str, list[Row]] = {}
        for name in PASS:
            if name in without:
                continue
            rows = load(folder, name)
            self._rows[name] = [row for row in rows if not is_development(row)]
            self.development[name] = [row for row in rows if is_development(row)]
        self._near = {name: near_rows(self._rows[name]) for name in FACTUAL if name in self._rows}
        self._sentences = [
            text
            for name, rows in self._rows.items()
            for text in dict.fromkeys(one for row in rows for one in (row.evidence, row.claim))
            if 25 < len(text) < 260
        ]
        sample = random.Random(seed).sample(self._sentences, 30_000)
        self._names = sorted({name for text in sample for name in names_in(text)})

    def one_pass(self, number: int) -> list[tuple[str, str, int]]:
        draw = random.Random(f"{self._seed}:{number}")
        pairs: list[tuple[str, str, int]] = []
        for name, rows in self._rows.items():
            pairs += [row[:3] for row in _draw(rows, PASS[name], draw, number)]
        total = len(pairs)
        pairs += self._mismatched(int(MISMATCHED * total), draw)
        pairs += [(claim, draw.choice(("", ".", "?", "[UNK]")), 2)
                  for claim, _, _ in draw.sample(pairs[:total], int(EMPTY * total))]  # fmt: skip
        pairs += self._edited(int(EDITED * total), draw)
        pairs += self._flipped(int(FLIPPED * total), draw)
        draw.shuffle(pairs)
        return pairs

    def _mismatched(self, count: int, draw: random.Random) -> Iterator[tuple[str, str, int]]:
        names = list(self._near)
        sizes = [min(len(self._rows[name]), 8_000) for name in names]
        for name in draw.choices(names, sizes, k=count):
            rows, near = self._rows[name], self._near[name]
            place = draw.randrange(len(rows))
            other = draw.choice(near[place]) if draw.random() < 0.6 else draw.randrange(len(rows))
            if rows[other].group != rows[place].group:
                yield rows[place].claim, rows[other].evidence, LABELS.index(NEUTRAL)

    def _edited(self, count: int, draw: random.Random) -> Iterator[tuple[str, str, int]]:
        done = 0
        while done < count:
            text = draw.choice(self._sentences)
            pair = edited_pair(text, draw, draw.sample(self._names, 2))
            if pair is None:
                continue
            done += 1
            claim, evidence = pair.claim, pair.evidence
            if draw.random() < 0.3:  # the sentence that matters is one of two
                both = [evidence, draw.choice(self._sentences)]
                draw.shuffle(both)
                evidence = " ".join(both)
            yield claim, evidence, LABELS.index(pair.label)

    def _flipped(self, count: int, draw: random.Random) -> Iterator[tuple[str, str, int]]:
        names = [name for name in self._rows if name not in ("breaking_nli", "negation_nli")]
        weights = [PASS[name] for name in names]
        done = 0
        while done < count:
            row = draw.choice(self._rows[draw.choices(names, weights)[0]])
            pair = flipped(row.claim, row.evidence, LABELS[row.label], draw)
            if pair is not None:
                done += 1
                yield pair.claim, pair.evidence, LABELS.index(pair.label)


def _draw(rows: list[Row], count: int, draw: random.Random, number: int) -> list[Row]:
    """``count`` rows of a pass: consecutive passes go through all rows before any comes again."""
    order = list(range(len(rows)))
    random.Random(zlib.crc32(rows[0].group.encode())).shuffle(order)
    start = number * count
    return [rows[order[(start + step) % len(rows)]] for step in range(count)]


def near_rows(rows: list[Row], lowest: int = 2, highest: int = 12) -> list[list[int]]:
    """For each row, rows of other groups whose evidence shares rare words with its claim."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    vectoriser = TfidfVectorizer(sublinear_tf=True, min_df=1, max_df=0.2, stop_words="english")
    evidence = vectoriser.fit_transform([row.evidence for row in rows]).T.tocsc()
    claims = vectoriser.transform([row.claim for row in rows])
    groups = np.array([zlib.crc32(row.group.encode()) for row in rows])
    near: list[list[int]] = []
    for start in range(0, len(rows), 500):
        scores = (claims[start : start + 500] @ evidence).toarray()
        best = np.argpartition(-scores, highest + 8, axis=1)[:, : highest + 8]
        for offset, row in enumerate(best):
            place = start + offset
            ordered = row[np.argsort(-scores[offset, row])]
            other = [int(one) for one in ordered if groups[one] != groups[place]]
            near.append(other[lowest:highest] or other[:1] or [place])
    return near
