"""Sealed predictions: answers that were recorded before their outcome became known.

An answer counts if the model to be judged gave it from evidence, combined in the circuit in robust
mode: that is what its promise is about. One answer per entity and predicate counts: with an outcome
the last one recorded before it, without one the newest.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import numpy as np

from lpf.ledger.contents import ANSWER, Entry, LedgerContents
from lpf.ledger.identity import broken
from lpf.ledger.reader import LedgerReader
from lpf.ledger.records import record_id
from lpf.monitor.outcomes import Outcome, Outcomes
from lpf.storage.values import to_micros
from lpf.types import FloatArray

# Why an answer does not count, or an outcome has no answer.
OTHER_MODEL = "answered by another model"
OTHER_KIND = "not answered from evidence in robust mode"
OTHER_TIME = "asked about an earlier date"
KNEW = "used the outcome's fact"
TOO_LATE = "recorded after the outcome was known"
NOT_ASKED = "outcomes of entities that nobody asked about"


@dataclass(frozen=True, eq=False)
class SealedAnswer:
    """One recorded answer, with ``probabilities`` [V] in the order of the predicate's values.
    ``items`` are the IDs of its evidence; ``familiarity`` [K] and ``says`` [K, V] (the factors) are
    theirs."""

    record_id: str
    entity_id: str
    recorded_at: int
    probabilities: FloatArray
    items: tuple[str, ...] = ()
    familiarity: FloatArray | None = None
    says: FloatArray | None = None

    @property
    def top(self) -> int:
        """The position of the most probable value."""
        return int(self.probabilities.argmax())


@dataclass(frozen=True, eq=False)
class Prediction:
    """A sealed answer with its outcome."""

    answer: SealedAnswer
    outcome: Outcome


class SealedAnswers:
    """The answers of one model about one predicate with these ``values``. The table of contents
    finds them, so that only records that count are read; each is compared with its hash.
    ``skipped`` counts the others by the reason why they do not count."""

    def __init__(
        self,
        records: LedgerReader,
        contents: LedgerContents,
        model: str,
        predicate: str,
        values: Sequence[str],
        since: int | None = None,
    ) -> None:
        self._records = records
        self._model = model
        self._predicate = predicate
        self._values = tuple(values)
        self.skipped: Counter[str] = Counter()
        self._places: dict[str, list[tuple[int, int]]] = {}
        reasons: dict[bytes | None, str | None] = {}
        for entry in contents.of_kind(ANSWER, predicate):
            if entry.value is None or (since is not None and entry.timestamp < since):
                continue
            if entry.context not in reasons:
                reasons[entry.context] = self._why_not(entry)
            reason = reasons[entry.context]
            if reason is None:
                self._places.setdefault(entry.entity_id, []).append((entry.seq, entry.timestamp))
            else:
                self.skipped[reason] += 1

    def __len__(self) -> int:
        return sum(map(len, self._places.values()))

    def predictions(self, outcomes: Outcomes) -> list[Prediction]:
        """The last answer before each outcome, in the order in which outcomes became known."""
        own = [one for one in outcomes.values() if one.predicate == self._predicate]
        own.sort(key=lambda one: (one.known_at, one.entity_id))
        found = []
        for outcome in own:
            answer = self._before(outcome)
            if answer is not None:
                found.append(Prediction(answer, outcome))
        return found

    def newest(self) -> Iterator[SealedAnswer]:
        """The newest answer about each entity, in the order of recording, with its items."""
        for seq, _ in sorted(places[-1] for places in self._places.values()):
            yield self._answer(seq, self._fields(seq, with_blobs=True))

    def _why_not(self, entry: Entry) -> str | None:
        """Why answers of this context do not count; None if they do."""
        if entry.context is None:
            return OTHER_KIND
        context = json.loads(self._records.blob(entry.context))
        if context.get("versions", {}).get("model") != self._model:
            return OTHER_MODEL
        is_robust = context.get("hyperparameters", {}).get("mode") == "robust"
        from_evidence = context.get("method") == "spn" and "parameters" in context
        return None if is_robust and from_evidence else OTHER_KIND

    def _before(self, outcome: Outcome) -> SealedAnswer | None:
        places = self._places.get(outcome.entity_id)
        if places is None:
            self.skipped[NOT_ASKED] += 1
            return None
        for seq, timestamp in reversed(places):
            if timestamp >= outcome.known_at:
                self.skipped[TOO_LATE] += 1
                continue
            fields = self._fields(seq)
            reason = _unsealed(fields, outcome)
            if reason is None:
                return self._answer(seq, fields)
            self.skipped[reason] += 1
        return None

    def _fields(self, seq: int, *, with_blobs: bool = False) -> Mapping[str, Any]:
        record = self._records.get(record_id(seq))
        return self._records.expand(record) if with_blobs else record.fields

    def _answer(self, seq: int, fields: Mapping[str, Any]) -> SealedAnswer:
        """With its items if the factors were filled in."""
        stated, factors = fields["distribution"], fields.get("factors", {})
        if fields["predicate"] != self._predicate or stated.keys() != set(self._values):
            raise broken(record_id(seq), "it is not what the ledger's table of contents says")
        chain = tuple(name for name, _ in fields.get("evidence_chain", ()))
        answer = SealedAnswer(
            record_id(seq),
            fields["entity_id"],
            to_micros(datetime.fromisoformat(fields["timestamp"])),
            np.array([stated[value] for value in self._values], np.float64),
        )
        if "potential" not in factors:
            return answer
        familiar = factors.get("familiarity", [1.0] * len(chain))
        return replace(
            answer,
            items=chain,
            familiarity=np.array(familiar, np.float64),
            says=np.array(factors["potential"], np.float64),
        )


def _unsealed(fields: Mapping[str, Any], outcome: Outcome) -> str | None:
    """Why an answer from before the outcome did not predict it; None if it did."""
    if fields["as_of"] != fields["timestamp"]:
        return OTHER_TIME
    used = {fact["fact_id"] for fact in fields.get("facts", ())}
    return KNEW if used & outcome.facts else None
