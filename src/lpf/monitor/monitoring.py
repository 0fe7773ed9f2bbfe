"""Monitoring of one model: its sealed predictions scored, its texts and answers compared with
training, and a verdict."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Any

import numpy as np

from lpf.ledger.contents import LedgerContents
from lpf.ledger.reader import LedgerReader
from lpf.metrics.betting import (
    LEVEL,
    against_held_out,
    against_probabilities,
    alarm_at,
    how_far_off,
    tolerated_share,
)
from lpf.metrics.calibration import Reliability, reliability
from lpf.model.artefact import Artefact
from lpf.model.held_out import HeldOutAnswers
from lpf.monitor.drift import (
    AnswerDrift,
    SourceDrift,
    SourceTotals,
    TextDrift,
    answer_drift,
    source_drift,
    text_drift,
)
from lpf.monitor.outcomes import Outcomes
from lpf.monitor.scoring import (
    CoverageLine,
    Scored,
    ScoreLine,
    WindowLine,
    coverage_lines,
    score_lines,
    window_lines,
)
from lpf.monitor.sealed import SealedAnswer, SealedAnswers
from lpf.monitor.verdict import judged, worst
from lpf.monitor.windows import WindowSize
from lpf.storage.evidence import EvidenceStore
from lpf.storage.values import iso
from lpf.sureness import Trust
from lpf.types import FloatArray

ANSWERS_AT_ONCE = 1000
UNKNOWN_VALUE = "outcomes with a value that the model does not know"
LARGEST_LOG = 700.0  # of a capital that is still a finite number


@dataclass(frozen=True, eq=False)
class BetAgainstPromise:
    """The capital of a bet against a promise after each outcome, as its natural logarithm [N]. The
    promise is refuted when the capital reaches ``needed``, at the position ``alarm``."""

    log_capital: FloatArray
    needed: float
    alarm: int | None

    @classmethod
    def of(cls, log_capital: FloatArray, tests: int) -> BetAgainstPromise:
        return cls(log_capital, tests / LEVEL, alarm_at(log_capital, tests))

    @property
    def now(self) -> float:
        """The capital after the newest outcome."""
        return float(np.exp(min(self.log_capital[-1], LARGEST_LOG)))

    @property
    def highest(self) -> float:
        return float(np.exp(min(self.log_capital.max(), LARGEST_LOG)))

    def to_dict(self) -> dict[str, Any]:
        return {
            "capital": self.now,
            "highest": self.highest,
            "needed": self.needed,
            "refuted_after": None if self.alarm is None else self.alarm + 1,
        }


@dataclass(frozen=True, eq=False)
class PredicateReport:
    """What was found about the answers to one predicate. Parts that need outcomes are None or empty
    without any. ``stated_bet`` is the test that decides; ``tolerated`` is the share of outcomes
    that may have nothing to do with the answers. ``skipped`` counts what does not count, by
    reason."""

    predicate: str
    values: tuple[str, ...]
    answers: int
    entities: int
    outcomes: int
    skipped: Mapping[str, int]
    trust: Trust
    held_out_entities: int = 0
    tolerated: float = 0.0
    stated_bet: BetAgainstPromise | None = None
    held_out_bet: BetAgainstPromise | None = None
    scores: tuple[ScoreLine, ...] = ()
    coverage: tuple[CoverageLine, ...] = ()
    windows: tuple[WindowLine, ...] = ()
    reliability: Reliability | None = None
    texts: TextDrift | None = None
    answered: AnswerDrift | None = None
    sources: tuple[SourceDrift, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        stated, before = self.stated_bet, self.held_out_bet
        texts, answered = self.texts, self.answered
        return {
            "predicate": self.predicate,
            **self.trust.to_dict(),
            "answers": self.answers,
            "entities": self.entities,
            "outcomes": self.outcomes,
            "held_out_entities": self.held_out_entities,
            "not_counted": dict(self.skipped),
            "tolerated": self.tolerated,
            "against_probabilities": None if stated is None else stated.to_dict(),
            "against_held_out": None if before is None else before.to_dict(),
            "scores": [asdict(one) for one in self.scores],
            "coverage": [{**asdict(one), "share": one.share} for one in self.coverage],
            "windows": [_flat(asdict(one)) for one in self.windows],
            "reliability": None if self.reliability is None else _columns(self.reliability),
            "texts": None
            if texts is None
            else {
                "items": texts.items,
                "unlike": texts.unlike,
                "share": texts.share,
                "promised": texts.promised,
                "p_value": texts.p_value,
                "found": texts.is_found,
                "windows": [_flat(asdict(one)) for one in texts.windows],
            },
            "answered": None
            if answered is None
            else {**asdict(answered), "found": answered.is_found},
            "sources": [asdict(one) for one in self.sources],
        }


@dataclass(frozen=True, eq=False)
class Monitoring:
    """What monitoring found about the model ``model``. ``trust`` is the worst of the verdicts on
    predicates that have answers.
    ``read_as`` says what was assumed about the file of outcomes, if there was one."""

    model: str
    at: int
    trust: Trust
    predicates: tuple[PredicateReport, ...]
    read_as: tuple[str, ...] = ()
    is_stored: bool = False

    @property
    def is_worse_than_promised(self) -> bool:
        return self.trust.state == "not trusted"

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "model": self.model,
            "at": iso(self.at),
            **self.trust.to_dict(),
            "predicates": [one.to_dict() for one in self.predicates],
            "read_as": list(self.read_as),
            "stored": self.is_stored,
        }


@dataclass(frozen=True)
class MonitoredParts:
    """What monitoring reads: the ledger, the sources of items, and the model with its promises."""

    records: LedgerReader
    contents: LedgerContents
    evidence: EvidenceStore
    model: Artefact


@dataclass(frozen=True)
class MonitorPlan:
    """Which answers and outcomes count: those of ``predicates``, from ``since`` on (microseconds
    since 1970; None: all). ``window`` is the size of windows, ``at`` the present moment."""

    predicates: tuple[str, ...]
    at: int
    since: int | None = None
    window: WindowSize | None = None


def monitored(parts: MonitoredParts, outcomes: Outcomes, plan: MonitorPlan) -> Monitoring:
    """Score the answers to each predicate and compare them with what the model promised."""
    reports = tuple(_report(parts, outcomes, plan, name) for name in plan.predicates)
    trust = worst([one.trust for one in reports if one.entities] or [reports[0].trust])
    return Monitoring(parts.model.version, plan.at, trust, reports)


def _report(
    parts: MonitoredParts, outcomes: Outcomes, plan: MonitorPlan, predicate: str
) -> PredicateReport:
    model = parts.model
    values = model.config.head(predicate).values
    held = model.runtime().held_out.get(predicate)
    sealed = SealedAnswers(
        parts.records, parts.contents, model.version, predicate, values, plan.since
    )
    wanted = {
        key: one
        for key, one in outcomes.items()
        if one.value in values and (plan.since is None or one.known_at >= plan.since)
    }
    predictions = sealed.predictions(wanted)
    scored = Scored.of(predictions, values)
    answers, totals = _newest(sealed, parts.evidence)
    knows_texts = model.runtime().familiarity_of(predicate) is not None
    tests = len(model.config.predicates)
    skipped = dict(sealed.skipped)
    unknown = sum(
        one.predicate == predicate and one.value not in values for one in outcomes.values()
    )
    if unknown:
        skipped[UNKNOWN_VALUE] = unknown
    report = PredicateReport(
        predicate,
        values,
        len(sealed),
        len(answers),
        len(scored),
        skipped,
        Trust("unknown", "", plan.at),
        0 if held is None else len(held),
        texts=text_drift(answers, plan.window) if knows_texts else None,
        answered=None if held is None else answer_drift(answers, values, held),
        sources=source_drift(totals),
    )
    if len(scored):
        report = replace(
            report, **_scores(scored, held, _brier(model, predicate, held), plan, tests)
        )
    return replace(report, trust=judged(report, plan.at))


def _scores(
    scored: Scored,
    held: HeldOutAnswers | None,
    brier: float | None,
    plan: MonitorPlan,
    tests: int,
) -> dict[str, Any]:
    """The parts of a report that need outcomes."""
    has_held_out = held is not None and len(held) > 0
    tolerated, before = 0.0, None
    if held is not None and has_held_out:
        tolerated = tolerated_share(np.exp(-held.label_surprise.astype(np.float64)), held.values)
        distances = how_far_off(held.label_surprise, held.top_surprise)
        before = BetAgainstPromise.of(
            against_held_out(how_far_off(*scored.surprises()), distances), tests
        )
    capital = against_probabilities(scored.probabilities, scored.labels, tolerated)
    return {
        "tolerated": tolerated,
        "stated_bet": BetAgainstPromise.of(capital, tests),
        "held_out_bet": before,
        "scores": tuple(score_lines(scored, held, brier)),
        "coverage": tuple(coverage_lines(scored, held))
        if held is not None and has_held_out
        else (),
        "windows": tuple(window_lines(scored, plan.window)),
        "reliability": reliability(scored.probabilities, scored.labels),
    }


def _newest(
    sealed: SealedAnswers, evidence: EvidenceStore
) -> tuple[list[SealedAnswer], SourceTotals]:
    """The newest answer about each entity, without what its items say: that is summed by source."""
    answers: list[SealedAnswer] = []
    totals = SourceTotals()
    newest = sealed.newest()
    while batch := list(islice(newest, ANSWERS_AT_ONCE)):
        totals.add(batch, evidence.sources({name for one in batch for name in one.items}))
        answers += [replace(one, says=None) for one in batch]
    return answers, totals


def _brier(model: Artefact, predicate: str, held: HeldOutAnswers | None) -> float | None:
    """Of the held-out entities, from the model card; None if the card has no score of them."""
    if held is None:
        return None
    found = [
        one.metrics.get("brier")
        for one in model.card.scores()
        if one.predicate == predicate
        and (one.variant, one.metrics.get("entities")) == ("spn", len(held))
        and one.data != "test"
    ]
    return found[0] if found else None


def _flat(line: dict[str, Any]) -> dict[str, Any]:
    """A window's fields beside those of the line, with its times as text."""
    window = line.pop("window")
    return {
        "first": iso(window["first"]),
        "last": iso(window["last"]),
        "count": window["count"],
        **line,
    }


def _columns(table: Reliability) -> dict[str, list[float]]:
    return {one.name: getattr(table, one.name).tolist() for one in fields(table)}
