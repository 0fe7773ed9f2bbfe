"""The report over several domains: how training went in each, side by side.

In all figures and tables the domain with the highest validation accuracy comes first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpf.errors import ConfigError
from lpf.report.bars_and_lines import Bars, height, key, paint_bars
from lpf.report.drawing import LIGHT, Drawing, draw
from lpf.report.page import (
    PageColumn,
    PageRow,
    figures,
    make_page,
    percent,
    percent_spread,
    points,
    section,
    table,
    warnings_box,
)
from lpf.report.training_run import FORMAT, RankedRun, as_json, null_warnings
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

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
    PageColumn("best epoch"),
    PageColumn("epochs"),
    PageColumn("stopped early"),
)

Runs = Mapping[str, RankedRun]


def write_domains_report(runs: Mapping[str, Trained], folder: Path) -> Path:
    """Write the page, ``domains.json`` and each figure as PNG and SVG; return the page's path.

    ``runs`` are by the name of their domain. ConfigError without runs or without matplotlib.
    """
    if not runs:
        raise ConfigError("report: there are no runs to compare. Nothing was written.")
    ranked = _ranked({name: RankedRun.of(trained) for name, trained in runs.items()})
    document = _document(ranked)
    drawings = [
        _accuracies(ranked),
        _gaps(ranked),
        _deviations(ranked),
        _epochs(ranked),
        _converged(ranked),
    ]
    warnings = [f"{name}: {warning}" for name, one in runs.items() for warning in one.warnings]
    warnings += null_warnings(document, NUMBERS)
    parts = [
        warnings_box(warnings),
        section("Domains", _table(ranked)),
        section("Figures", figures(drawings)),
        f"<footer>Every number on this page is also in {NUMBERS}.</footer>",
    ]
    for drawing in drawings:
        drawing.write(folder)
    write_atomically(folder / NUMBERS, as_json(document))
    write_atomically(folder / PAGE, make_page("Training over domains", parts).encode())
    return folder / PAGE


def _ranked(runs: Runs) -> Runs:
    """The highest validation accuracy first, equal ones by name."""

    def rank(name: str) -> tuple[float, str]:
        return -runs[name].spread("validation_accuracy").mean, name

    return {name: runs[name] for name in sorted(runs, key=rank)}


def _document(runs: Runs) -> dict[str, Any]:
    """The content of ``domains.json``."""
    return {
        "format": FORMAT,
        "domains": [
            {
                "domain": name,
                "seeds": [seed.number for seed in run.seeds],
                "selected": run.selected.number,
                "spread": run.spreads(),
                "train_minus_validation_accuracy": run.accuracy_gap,
                "mean_best_epoch": run.mean_best_epoch,
                "mean_epochs": run.mean_epochs,
                "converged_share": run.converged_share,
            }
            for name, run in runs.items()
        ],
    }


def _table(runs: Runs) -> str:
    rows = (PageRow(_cells(name, run)) for name, run in runs.items())
    return table("Means over seeds ± one standard deviation", COLUMNS, rows)


def _cells(name: str, run: RankedRun) -> list[str]:
    count = len(run.seeds)
    train, validation = run.spread("train_accuracy"), run.spread("validation_accuracy")
    return [
        name,
        str(count),
        percent_spread(train.mean, train.sd, count),
        percent_spread(validation.mean, validation.sd, count),
        points(run.accuracy_gap),
        str(run.selected.number),
        percent(validation.selected),
        f"{run.mean_best_epoch:.1f}",
        f"{run.mean_epochs:.1f}",
        percent(run.converged_share),
    ]


def _accuracies(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        train = _accuracy_bars(runs, "train_accuracy", LIGHT["second"])
        validation = _accuracy_bars(runs, "validation_accuracy", LIGHT["first"])
        paint_bars(axes, list(runs), [train, validation])
        axes.set_xlim(0, 100)
        axes.set_xlabel("accuracy, %")
        return [key(LIGHT["second"], "training"), key(LIGHT["first"], "validation")]

    return draw(
        "domain-accuracy",
        "Accuracy by domain",
        "Accuracy on single items at each seed's best epoch: mean over seeds, with one standard "
        "deviation to either side. Training figures are running means with dropout and one sample "
        "per item.",
        height(list(runs), 2),
        paint,
    )


def _accuracy_bars(runs: Runs, name: str, colour: str) -> Bars:
    spreads = [run.spread(name) for run in runs.values()]
    means = [100 * spread.mean for spread in spreads]
    errors = [
        100 * one.sd if len(run.seeds) > 1 else math.nan
        for one, run in zip(spreads, runs.values(), strict=True)
    ]
    low = [mean - error for mean, error in zip(means, errors, strict=True)]
    high = [mean + error for mean, error in zip(means, errors, strict=True)]
    return Bars(means, _one_decimal(means), colour, low, high)


def _gaps(runs: Runs) -> Drawing:
    gaps = [run.accuracy_gap for run in runs.values()]

    def paint(axes: Axes) -> Sequence[Artist]:
        colours = [LIGHT["second"] if gap > 0 else LIGHT["first"] for gap in gaps]
        bars = Bars([100 * gap for gap in gaps], [points(gap) for gap in gaps], colours)
        paint_bars(axes, list(runs), [bars])
        axes.axvline(0, color=LIGHT["quiet"], linewidth=0.8)
        axes.margins(x=0.08)
        axes.set_xlabel("training minus validation accuracy, points")
        return [key(LIGHT["second"], "training higher"), key(LIGHT["first"], "validation higher")]

    return draw(
        "domain-gap",
        "Gap between training and validation",
        "Means over seeds. A gap well above 0 means that the networks memorised training items. "
        "Dropout, which only training figures have, can make it negative.",
        height(list(runs)),
        paint,
    )


def _deviations(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        deviations = [100 * run.spread("validation_accuracy").sd for run in runs.values()]
        words = [
            f"{deviation:.2f}" if len(run.seeds) > 1 else "one seed"
            for deviation, run in zip(deviations, runs.values(), strict=True)
        ]
        paint_bars(axes, list(runs), [Bars(deviations, words, LIGHT["first"])])
        axes.set_xlim(left=0)
        axes.set_xlabel("standard deviation, points")
        return []

    return draw(
        "domain-deviation",
        "Spread of validation accuracy over seeds",
        "How much the result depends on the seed.",
        height(list(runs)),
        paint,
    )


def _epochs(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        best = [run.mean_best_epoch for run in runs.values()]
        trained = [run.mean_epochs for run in runs.values()]
        upper = Bars(best, _one_decimal(best), LIGHT["first"])
        lower = Bars(trained, _one_decimal(trained), LIGHT["other"])
        paint_bars(axes, list(runs), [upper, lower])
        axes.set_xlabel("epochs, mean over seeds")
        return [key(LIGHT["first"], "to the best epoch"), key(LIGHT["other"], "in total")]

    return draw(
        "domain-epochs",
        "Epochs to convergence",
        "The epoch with the lowest validation loss, and the epoch at which training stopped.",
        height(list(runs), 2),
        paint,
    )


def _converged(runs: Runs) -> Drawing:
    def paint(axes: Axes) -> Sequence[Artist]:
        shares = [run.converged_share for run in runs.values()]
        words = [percent(share) for share in shares]
        bars = Bars([100 * share for share in shares], words, LIGHT["first"])
        paint_bars(axes, list(runs), [bars])
        axes.set_xlim(0, 100)
        axes.set_xlabel("share of seeds, %")
        return []

    return draw(
        "domain-converged",
        "Seeds that stopped early",
        "Seeds whose validation loss stopped falling before the last epoch. If there are few, more "
        "epochs would help.",
        height(list(runs)),
        paint,
    )


def _one_decimal(numbers: Sequence[float]) -> list[str]:
    return [f"{number:.1f}" for number in numbers]
