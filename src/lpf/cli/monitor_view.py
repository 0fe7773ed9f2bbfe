"""Show what monitoring found on the terminal: verdict, scores, coverage, drift, sources."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from lpf.cli.safe_output import one_line
from lpf.cli.terminal import count, indented, print_pairs, print_table, table

if TYPE_CHECKING:
    from lpf.monitor.monitoring import Monitoring, PredicateReport
    from lpf.monitor.scoring import Estimate, ScoreLine

STYLES = {
    "trusted": "bold green",
    "unknown": "bold",
    "watch": "bold yellow",
    "not trusted": "bold red",
}
SOURCES_SHOWN = 10
WINDOWS_SHOWN = 8


def show_monitoring(output: Console, found: Monitoring) -> None:
    output.print(Text.assemble("Verdict: ", (found.trust.state, STYLES[found.trust.state])))
    shown = [one for one in found.predicates if one.entities] or found.predicates[:1]
    for report in shown:
        output.print(indented(Text(one_line(_sentence(report)))))
    for report in shown:
        output.print()
        _show_predicate(output, report, named=len(shown) > 1)
    output.print()
    pairs = [("model", found.model)]
    if found.read_as:
        pairs.append(("read as", ", ".join(found.read_as)))
    stored = "stored; answers and lpf doctor show it" if found.is_stored else "not stored"
    print_pairs(output, [*pairs, ("verdict", stored)])


def _sentence(report: PredicateReport) -> str:
    reason = report.trust.reason
    return f"{reason[:1].upper()}{reason[1:]}."


def _show_predicate(output: Console, report: PredicateReport, *, named: bool) -> None:
    if named:
        output.print(Text(one_line(report.predicate), style="bold"))
    entities = count(report.entities, "entity", "entities")
    counted = f"{count(report.outcomes, 'outcome')} of {entities} with an answer"
    skipped = ", ".join(f"{number:,} {reason}" for reason, number in report.skipped.items())
    words = f"{counted}; not counted: {skipped}" if skipped else counted
    output.print(indented(Text(one_line(words), style="dim")))
    if report.scores:
        output.print()
        _show_scores(output, report)
    if report.coverage:
        rows = [
            (
                f"{100 * one.promised:.0f} %",
                f"{100 * one.share:.0f} %",
                f"{100 * one.low:.0f} to {100 * one.high:.0f} %",
                "too low" if one.is_low else "",
            )
            for one in report.coverage
        ]
        names = ("sets", "had the true value", "expected", " ")
        print_table(output, "Prediction sets", table(names, rows, right=names[1:3]))
        output.print()
    if len(report.windows) > 1:
        _show_windows(output, report)
    drift = list(_drift(report))
    if drift:
        output.print(Text("Drift", style="bold"))
        print_pairs(output, drift)
        output.print()
    _show_sources(output, report)


def _show_scores(output: Console, report: PredicateReport) -> None:
    columns = 4 if report.held_out_entities else 3
    rows = [
        (one.name, _estimate(one, one.now), _number(one, one.stated), _held_out(one))[:columns]
        for one in report.scores
    ]
    held = f"{report.held_out_entities:,} held-out entities"
    names = ("score", "now (95 % interval)", "as stated", held)[:columns]
    print_table(output, "Scores", table(names, rows, right=names[1:]))
    output.print()
    stated = report.stated_bet
    assert stated is not None  # there are scores
    tolerated = f", if {100 * report.tolerated:.1f} % of outcomes may be unrelated to the answers"
    pairs = [
        (
            "evidence",
            f"{_capital(stated.now)} to 1 that outcomes are worse than stated"
            f"{tolerated if report.tolerated else ''} ({stated.needed:.0f} to 1 refutes the model)",
        )
    ]
    if stated.alarm is not None:
        pairs.append(("refuted", f"after outcome {stated.alarm + 1:,} of {report.outcomes:,}"))
    print_pairs(output, pairs)
    output.print()


def _show_windows(output: Console, report: PredicateReport) -> None:
    from lpf.cli.terminal import when
    from lpf.storage.values import from_micros

    shown = report.windows[-WINDOWS_SHOWN:]
    rows = [
        (
            when(from_micros(one.window.last)),
            f"{one.window.count:,}",
            f"{100 * one.accuracy:.0f} %",
            f"{one.nll:.2f}",
            f"{one.low:.2f} to {one.high:.2f}",
            "too high" if one.nll > one.high else "",
        )
        for one in shown
    ]
    names = ("until", "outcomes", "right", "NLL", "expected", " ")
    print_table(output, "Newest windows", table(names, rows, right=names[1:5]))
    output.print()


def _drift(report: PredicateReport) -> Iterator[tuple[str, str]]:
    texts, answered = report.texts, report.answered
    if texts is not None:
        yield (
            "texts",
            f"{100 * texts.share:.1f} % of {texts.items:,} unlike the training texts, at most "
            f"{100 * texts.promised:.0f} % expected{_p_value(texts.p_value, texts.is_found)}",
        )
    if answered is not None:
        yield (
            "answers",
            f"{100 * answered.distance:.0f} % have other values than those about held-out entities"
            f"{_p_value(answered.p_value, answered.is_found)}",
        )


def _p_value(number: float, is_found: bool) -> str:
    shown = "p < 0.001" if number < 0.001 else f"p = {number:.3f}"
    return f" ({shown}): a change" if is_found else f" ({shown})"


def _show_sources(output: Console, report: PredicateReport) -> None:
    if not report.sources:
        return
    ordered = sorted(report.sources, key=lambda one: not one.findings)
    rows: list[Sequence[str]] = [
        (
            "(none)" if one.source is None else one.source,
            f"{one.items:,}",
            f"{100 * one.unlike / one.items:.0f} %",
            f"{100 * one.agreeing / one.items:.0f} %",
            f"{one.bits:+.2f}",
            ", ".join(one.findings),
        )
        for one in ordered[:SOURCES_SHOWN]
    ]
    names = ("source", "items", "unlike", "agree", "bits", " ")
    print_table(output, "Sources", table(names, rows, right=names[1:5], flexible="source"))
    more = len(ordered) - SOURCES_SHOWN
    if more > 0:
        output.print(indented(Text(f"and {more:,} more; --json has all", style="dim")))


def _estimate(line: ScoreLine, one: Estimate) -> str:
    return f"{_number(line, one.mean)} ({_number(line, one.low)} to {_number(line, one.high)})"


def _held_out(line: ScoreLine) -> str:
    if line.held_out is not None:
        return _estimate(line, line.held_out)
    return "" if line.held_out_mean is None else _number(line, line.held_out_mean)


def _number(line: ScoreLine, number: float) -> str:
    return f"{100 * number:.1f} %" if line.name == "accuracy" else f"{number:.3f}"


def _capital(number: float) -> str:
    if number < 0.01:
        return "less than 0.01"
    return (
        f"{number:.2f}" if number < 10 else f"{number:,.0f}" if number < 1e6 else "over 1,000,000"
    )
