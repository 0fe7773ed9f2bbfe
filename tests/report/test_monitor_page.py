"""The page about monitoring: complete, offline, and inert whatever the data contains."""

from __future__ import annotations

import re

import numpy as np
import pytest
from page_outline import Outline
from test_case_file import NASTY

from lpf.metrics.betting import against_probabilities
from lpf.metrics.calibration import reliability
from lpf.model.held_out import HeldOutAnswers
from lpf.monitor.drift import AnswerDrift, SourceDrift, text_drift
from lpf.monitor.monitoring import BetAgainstPromise, Monitoring, PredicateReport
from lpf.monitor.scoring import Scored, coverage_lines, score_lines, window_lines
from lpf.monitor.sealed import SealedAnswer
from lpf.monitor.windows import WindowSize
from lpf.report.foreign_text import HIDDEN
from lpf.report.monitor_page import monitor_page
from lpf.report.range_charts import RangePoint, one_below_the_other, over_time
from lpf.sureness import Trust

DAY = 86_400_000_000


def found(name: str = "level") -> Monitoring:
    random = np.random.default_rng(0)
    rows = random.dirichlet([0.5, 0.5], size=60)
    labels = (random.random(60) < rows[:, 1]).astype(np.int64)
    scored = Scored(rows, labels, np.arange(60) * DAY)
    held = HeldOutAnswers.from_answers("apart", rows, labels.astype(np.intp), np.arange(60))
    answers = [
        SealedAnswer("INF1", name, place * DAY, rows[place], (name,), np.array([place % 3 / 3]))
        for place in range(60)
    ]
    values = (f"{name} yes", f"{name} no")
    report = PredicateReport(
        name,
        values,
        60,
        60,
        60,
        {name: 3},
        Trust("watch", f"sources have changed: {name}", 5),
        60,
        0.02,
        BetAgainstPromise.of(against_probabilities(rows, labels), 1),
        None,
        tuple(score_lines(scored, held, 0.2)),
        tuple(coverage_lines(scored, held)),
        tuple(window_lines(scored, WindowSize(12))),
        reliability(rows, labels),
        text_drift(answers, None),
        AnswerDrift(dict.fromkeys(values, 3), dict.fromkeys(values, 1), 0.3, 0.1),
        (SourceDrift(name, 30, 2, 20, -1.5, 0.001, 0.5, ("unlike the training texts",)),
         SourceDrift(None, 3, 0, 3, 1.0)),
    )  # fmt: skip
    return Monitoring("0123456789abcdef", 10 * DAY, report.trust, (report,))


def test_the_page_has_scores_charts_and_tables() -> None:
    page = monitor_page(found())
    outline = Outline(page)
    assert not outline.open
    assert outline.tags.count("svg") == 4  # log loss, reliability, coverage, texts
    assert outline.tags.count("table") == 5  # the diagram describes its points itself
    assert {"accuracy", "NLL", "Brier score", "ECE", "(none)"} <= set(outline.cells)
    assert "default-src 'none'" in page
    assert not re.search(r"https?:|<script|style=|src=|href=", page)
    assert "prefers-color-scheme: dark" in page


def test_hostile_text_is_only_text() -> None:
    page = monitor_page(found(NASTY))
    assert not Outline(page).open
    assert Outline(page).tags == Outline(monitor_page(found())).tags
    assert not re.search(r"https?:[^&]*<|<script|<img|style=| on\w+=[\"']", page)
    assert not HIDDEN.search(page.replace("\n", ""))


def test_a_page_without_outcomes() -> None:
    trust = Trust("unknown", "no answer by this model is recorded", 0)
    report = PredicateReport("level", ("a", "b"), 0, 0, 0, {}, trust)
    page = monitor_page(Monitoring("0", 0, trust, (report,)))
    assert not Outline(page).open
    assert "<svg" not in page


@pytest.mark.parametrize("count", [1, 2, 40])
def test_points_outside_their_range_stand_out(count: int) -> None:
    points = [RangePoint(str(n), 0.5 + n, 0.5, 0.4, 0.6, f"note {n}") for n in range(count)]
    for chart in (over_time(points, "label", str), one_below_the_other(points, "label", 0.0)):
        assert not Outline(chart).open
        assert chart.count('class="for"') == 1
        assert chart.count('class="against"') == count - 1
        assert chart.count("<title>") == count
        assert "nan" not in chart
