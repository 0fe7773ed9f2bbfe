"""What monitoring found, on one page: verdict, scores beside the promise, charts over time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from lpf.report.case_calibration import reliability_figure
from lpf.report.case_file import SHEET
from lpf.report.foreign_text import beginning
from lpf.report.page import (
    PageColumn,
    PageRow,
    decimals,
    definitions,
    glance,
    make_page,
    paragraph,
    percent,
    section,
    table,
    text,
)
from lpf.report.range_charts import RangePoint, one_below_the_other, over_time
from lpf.storage.values import iso

if TYPE_CHECKING:
    from lpf.monitor.monitoring import Monitoring, PredicateReport
    from lpf.monitor.scoring import Estimate, ScoreLine

NAME_CHARACTERS: Final = 80
SOURCES_SHOWN: Final = 100
LEAST_COVERAGE: Final = 0.5  # where the axis of coverage begins, unless a share is lower
EXPECTED = (
    "The band is where 95 of 100 windows would be if outcomes were drawn from the stated "
    "probabilities; the dashed line is the middle. Points outside it are orange."
)


def monitor_page(found: Monitoring, title: str = "Monitoring") -> str:
    """The whole page as HTML. It needs no other file and runs no script."""
    return make_page(title, _parts(found), sheet=SHEET)


def _parts(found: Monitoring) -> Iterator[str]:
    outcomes = sum(one.outcomes for one in found.predicates)
    entities = sum(one.entities for one in found.predicates)
    yield glance(
        [
            ("verdict", found.trust.state),
            ("outcomes", f"{outcomes:,}"),
            ("entities answered", f"{entities:,}"),
        ]
    )
    shown = [one for one in found.predicates if one.entities] or found.predicates[:1]
    for number, report in enumerate(shown):
        yield from _about(report, number, named=len(shown) > 1)
    moment = iso(found.at)[:16].replace("T", " ")
    yield f"<footer>Model {text(found.model)}, monitored {moment} UTC.</footer>"


def _about(report: PredicateReport, number: int, *, named: bool) -> Iterator[str]:
    name = beginning(report.predicate, NAME_CHARACTERS)
    ending = f": {name}" if named else ""
    yield section(f"Verdict{ending}", *_verdict(report))
    if report.scores:
        yield section(f"Scores{ending}", *_scores(report))
    if len(report.windows) > 1:
        yield section(f"Over time{ending}", *_over_time(report))
    if report.reliability is not None:
        drawn = reliability_figure(
            report.reliability,
            answers="answers with an outcome",
            name=f"reliability-{number}",
        )
        yield section(f"Reliability{ending}", drawn)
    if report.coverage:
        yield section(f"Prediction sets{ending}", *_coverage(report))
    yield section(f"Drift{ending}", *_drift(report))
    if report.sources:
        yield section(f"Sources{ending}", *_sources(report))


def _verdict(report: PredicateReport) -> Iterator[str]:
    reason = report.trust.reason
    sentence = f"{report.trust.state.capitalize()}: {reason}."
    if report.trust.warning is None:
        yield paragraph(sentence)
    else:
        yield f'<aside class="warnings" aria-label="Warning"><p>{text(sentence)}</p></aside>'
    if report.skipped:
        counted = [(why, f"{number:,}") for why, number in report.skipped.items()]
        yield paragraph("Not counted:")
        yield definitions(counted)


def _scores(report: PredicateReport) -> Iterator[str]:
    columns = (
        PageColumn("score", "word"),
        PageColumn("now"),
        PageColumn("95 % interval"),
        PageColumn("as stated"),
        PageColumn(f"{report.held_out_entities:,} held-out entities"),
        PageColumn("95 % interval"),
    )[: 6 if report.held_out_entities else 4]
    rows = [
        PageRow(
            [
                one.name,
                _number(one, one.now.mean),
                _interval(one, one.now),
                _number(one, one.stated),
                *_held_out(one),
            ][: len(columns)]
        )
        for one in report.scores
    ]
    yield table("Scores of answers whose outcome is known, beside what was promised", columns, rows)
    bet = report.stated_bet
    assert bet is not None  # there are scores
    refuted = "not refuted" if bet.alarm is None else f"refuted after outcome {bet.alarm + 1:,}"
    shown = f"{bet.now:,.2f}" if bet.now < 1e6 else "over 1,000,000"
    tolerated = (
        f" Up to {percent(report.tolerated)} of outcomes may have nothing to do with the answers: "
        "held-out entities do not rule that out."
    )
    yield paragraph(
        f"Evidence that outcomes are worse than the stated probabilities: {shown} to 1. The model "
        f"is {refuted}; that takes {bet.needed:.0f} to 1, so the chance of a false alarm is at "
        f"most 5 %, however often one looks.{tolerated if report.tolerated else ''}"
    )


def _held_out(line: ScoreLine) -> tuple[str, str]:
    if line.held_out is not None:
        return _number(line, line.held_out.mean), _interval(line, line.held_out)
    mean = line.held_out_mean
    return ("" if mean is None else _number(line, mean)), ""


def _over_time(report: PredicateReport) -> Iterator[str]:
    losses = [
        RangePoint(
            _day(one.window.last),
            one.nll,
            one.stated,
            one.low,
            one.high,
            f"{one.window.count:,} outcomes until {_day(one.window.last)}: NLL {decimals(one.nll)},"
            f" expected {decimals(one.low)} to {decimals(one.high)}; {percent(one.accuracy)} right",
        )
        for one in report.windows
    ]
    yield over_time(losses, "Mean log loss (NLL) of each window of outcomes", decimals)
    yield paragraph(EXPECTED)
    columns = (
        PageColumn("until", "word"),
        *(PageColumn(name) for name in ("outcomes", "right", "as stated", "NLL", "expected")),
    )
    rows = [
        PageRow(
            [
                _day(one.window.last),
                f"{one.window.count:,}",
                percent(one.accuracy),
                percent(one.stated_accuracy),
                decimals(one.nll),
                f"{decimals(one.low)} to {decimals(one.high)}",
            ],
            is_selected=one.nll > one.high,
        )
        for one in report.windows
    ]
    yield table("Windows of outcomes; those with an NLL that is too high stand out", columns, rows)


def _coverage(report: PredicateReport) -> Iterator[str]:
    points = [
        RangePoint(
            f"{100 * one.promised:.0f} %",
            one.share,
            one.promised,
            one.low,
            one.high,
            f"{one.covered:,} of {one.outcomes:,} sets had the true value ({percent(one.share)}); "
            f"expected {percent(one.low)} to {percent(one.high)}",
        )
        for one in report.coverage
    ]
    least = min([LEAST_COVERAGE, *(one.value for one in points)])
    label = "Share of prediction sets that had the true value: point; expected: bar; promised: line"
    yield one_below_the_other(points, label, least)
    columns = (PageColumn("sets"), PageColumn("had the true value"), PageColumn("expected"))
    rows = [
        PageRow(
            [point.name, percent(point.value), f"{percent(point.low)} to {percent(point.high)}"],
            is_selected=one.is_low,
        )
        for point, one in zip(points, report.coverage, strict=True)
    ]
    yield table("Coverage", columns, rows)


def _drift(report: PredicateReport) -> Iterator[str]:
    texts, answered = report.texts, report.answered
    if texts is None and answered is None:
        yield paragraph("There are no answers from evidence to compare with training.")
    if texts is not None:
        yield paragraph(
            f"{percent(texts.share)} of {texts.items:,} texts are unlike the training texts; at "
            f"most {percent(texts.promised)} were expected (p = {decimals(texts.p_value)})"
            f"{': a change.' if texts.is_found else '.'}"
        )
        if len(texts.windows) > 1:
            points = [
                RangePoint(
                    _day(one.window.last),
                    one.unlike / one.items,
                    texts.promised,
                    0.0,
                    texts.promised,
                    f"{one.unlike:,} of {one.items:,} texts in answers until "
                    f"{_day(one.window.last)}",
                )
                for one in texts.windows
            ]
            label = "Share of texts unlike the training texts; the band is what was expected"
            yield over_time(points, label, percent)
    if answered is not None:
        now, before = sum(answered.now.values()), sum(answered.held_out.values())
        rows = [
            PageRow(
                [
                    beginning(value, NAME_CHARACTERS),
                    percent(answered.now[value] / now),
                    percent(answered.held_out[value] / before),
                ]
            )
            for value in report.values
        ]
        columns = (PageColumn("value", "name"), PageColumn("now"), PageColumn("held out"))
        caption = (
            f"How often each value is the answer: {percent(answered.distance)} differ (p = "
            f"{decimals(answered.p_value)}){', a change' if answered.is_found else ''}"
        )
        yield table(caption, columns, rows)


def _sources(report: PredicateReport) -> Iterator[str]:
    columns = (
        PageColumn("source", "name"),
        PageColumn("items"),
        PageColumn("unlike the training texts"),
        PageColumn("say what was answered"),
        PageColumn("bits for the answer"),
        PageColumn("finding", "long"),
    )
    ordered = sorted(report.sources, key=lambda one: not one.findings)
    rows = [
        PageRow(
            [
                "(none)" if one.source is None else beginning(one.source, NAME_CHARACTERS),
                f"{one.items:,}",
                percent(one.unlike / one.items),
                percent(one.agreeing / one.items),
                f"{one.bits:+.2f}".replace("-", "−"),
                ", ".join(one.findings),
            ],
            is_selected=bool(one.findings),
        )
        for one in ordered[:SOURCES_SHOWN]
    ]
    yield table("Items of each source in the newest answers", columns, rows)
    if len(ordered) > SOURCES_SHOWN:
        yield paragraph(f"{len(ordered) - SOURCES_SHOWN:,} more sources are not shown.")


def _number(line: ScoreLine, number: float) -> str:
    return percent(number) if line.name == "accuracy" else decimals(number)


def _interval(line: ScoreLine, one: Estimate) -> str:
    return f"{_number(line, one.low)} to {_number(line, one.high)}"


def _day(micros: int) -> str:
    return iso(micros)[:10]
