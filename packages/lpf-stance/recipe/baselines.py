"""Two simple readers of stances, to compare with: the cosine of sentence embeddings, and words."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from lpf.reading import MiniLMReader
from recipe.mixture import LABELS, Row

Probabilities = npt.NDArray[np.float64]
THRESHOLDS = 40  # tried for each of the two
_WORDS = re.compile(r"\w+")
_NEGATION = re.compile(r"\b(?:not|no|never|none|nobody|nothing|cannot|without)\b|n't\b")


class CosineBaseline:
    """The cosine of the embeddings of claim and evidence, divided by two thresholds. A pair gets
    the shares of the labels in its interval; the thresholds are those with the best accuracy."""

    def __init__(self, reader: MiniLMReader) -> None:
        self._reader = reader

    def fit(self, rows: Sequence[Row]) -> CosineBaseline:
        cosines, labels = self._cosines(rows), np.array([row.label for row in rows])
        tried = np.unique(np.quantile(cosines, np.linspace(0.02, 0.98, THRESHOLDS)))
        best = -1.0
        for low, high in itertools.combinations(tried, 2):
            counts = _counts(np.searchsorted((low, high), cosines), labels)
            right = counts.max(axis=1).sum()
            if right > best:
                best, self._thresholds = right, (low, high)
                self._shares = (counts + 1) / (counts + 1).sum(axis=1, keepdims=True)
        return self

    def predict(self, rows: Sequence[Row]) -> Probabilities:
        found: Probabilities = self._shares[np.searchsorted(self._thresholds, self._cosines(rows))]
        return found

    def _cosines(self, rows: Sequence[Row]) -> npt.NDArray[np.float32]:
        claims = self._reader.read_many([row.claim for row in rows])
        evidence = self._reader.read_many([row.evidence for row in rows])
        found: npt.NDArray[np.float32] = (claims * evidence).sum(axis=1)
        return found


def _counts(intervals: npt.NDArray[np.intp], labels: npt.NDArray[np.intp]) -> Probabilities:
    counts = np.zeros((3, len(LABELS)))
    np.add.at(counts, (intervals, labels), 1)
    return counts


class WordsBaseline:
    """Logistic regression on the words of the claim, those of the evidence (both TF-IDF), and what
    they share: words, numbers, negation."""

    def fit(self, rows: Sequence[Row]) -> WordsBaseline:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.linear_model import LogisticRegression

        settings = {"sublinear_tf": True, "min_df": 2, "ngram_range": (1, 2)}
        self._claims = TfidfVectorizer(**settings).fit([row.claim for row in rows])
        self._evidence = TfidfVectorizer(**settings).fit([row.evidence for row in rows])
        self._model = LogisticRegression(max_iter=300)
        self._model.fit(self._features(rows), [row.label for row in rows])
        return self

    def predict(self, rows: Sequence[Row]) -> Probabilities:
        found = np.full((len(rows), len(LABELS)), 1e-6)
        found[:, self._model.classes_] = self._model.predict_proba(self._features(rows))
        return found

    def _features(self, rows: Sequence[Row]) -> object:
        from scipy.sparse import csr_matrix, hstack

        return hstack(
            [
                self._claims.transform([row.claim for row in rows]),
                self._evidence.transform([row.evidence for row in rows]),
                csr_matrix([_overlap(row) for row in rows]),
            ]
        ).tocsr()


def _overlap(row: Row) -> list[float]:
    claim, evidence = (_WORDS.findall(text.lower()) for text in (row.claim, row.evidence))
    numbers = [word for word in claim if word.isdigit()]
    negated = [bool(_NEGATION.search(text.lower())) for text in (row.claim, row.evidence)]
    return [
        _share(claim, set(evidence)),
        _share(numbers, set(evidence)),
        float(negated[0]),
        float(negated[1]),
        float(negated[0] != negated[1]),
    ]


def _share(words: Sequence[str], among: set[str]) -> float:
    return sum(word in among for word in words) / len(words) if words else 1.0
