"""The report over several domains: how training went in each, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.errors import ConfigError
from lpf.report import domain_figures
from lpf.report.documents import as_json, domains_document, not_finite
from lpf.report.page import (
    PageColumn,
    PageRow,
    figures,
    page,
    percent,
    percent_spread,
    points,
    section,
    table,
    warnings_box,
)
from lpf.report.training_report import number_warnings
from lpf.report.training_run import Run
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    from lpf.training.assembly import Trained

PAGE = "domains.html"
NUMBERS = "domains.json"
COLUMNS = (
    PageColumn("domain", "name"),
    PageColumn("seeds"),
    PageColumn("training accuracy"),
    PageColumn("validation accuracy"),
    PageColumn("gap, points"),
    PageColumn("best seed"),
    PageColumn("its accuracy"),
    PageColumn("epochs to the best"),
    PageColumn("epochs"),
    PageColumn("stopped early"),
)


def write_domains_report(runs: Mapping[str, Trained], folder: Path) -> Path:
    """``runs`` by the name of their domain. Writes the page, ``domains.json`` and each figure as
    PNG and SVG; returns the page's path. ConfigError for no runs, or without matplotlib."""
    if not runs:
        raise ConfigError("report: there are no runs to compare. Nothing was written.")
    ordered = _ordered({name: Run.of(trained) for name, trained in runs.items()})
    document = domains_document(ordered)
    drawings = [
        domain_figures.accuracies(ordered),
        domain_figures.gaps(ordered),
        domain_figures.deviations(ordered),
        domain_figures.epochs(ordered),
        domain_figures.converged(ordered),
    ]
    cautions = [f"{name}: {caution}" for name, one in runs.items() for caution in one.warnings]
    cautions += number_warnings(list(not_finite(document)), NUMBERS)
    parts = [
        warnings_box(cautions),
        section("Domains", _table(ordered)),
        section("Figures", figures(drawings)),
        f"<footer>Every number of this page stands in {NUMBERS} beside it.</footer>",
    ]
    for drawing in drawings:
        drawing.write(folder)
    write_atomically(folder / NUMBERS, as_json(document))
    write_atomically(folder / PAGE, page("Training over domains", parts).encode())
    return folder / PAGE


def _ordered(runs: dict[str, Run]) -> dict[str, Run]:
    """The highest validation accuracy first, equal ones by name."""

    def place(name: str) -> tuple[float, str]:
        return -runs[name].spread("validation_accuracy").mean, name

    return {name: runs[name] for name in sorted(runs, key=place)}


def _table(runs: Mapping[str, Run]) -> str:
    rows = (PageRow(_cells(name, run)) for name, run in runs.items())
    return table("Means over seeds ± one standard deviation", COLUMNS, rows)


def _cells(name: str, run: Run) -> list[str]:
    count = len(run.seeds)
    train, validation = run.spread("train_accuracy"), run.spread("validation_accuracy")
    return [
        name,
        str(count),
        percent_spread(train.mean, train.sd, count),
        percent_spread(validation.mean, validation.sd, count),
        points(domain_figures.gap(run)),
        str(run.selected.number),
        percent(validation.selected),
        f"{domain_figures.epochs_to_best(run):.1f}",
        f"{domain_figures.epochs_trained(run):.1f}",
        percent(run.converged_share),
    ]
