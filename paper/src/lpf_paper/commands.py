"""``lpf experiment paper``: the paper's experimental part, run and reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, command, group, print_document
from lpf.cli.evaluate import Keep, Workers

if TYPE_CHECKING:
    from lpf_paper.experiment import ExperimentRun


app = group("experiment", "Run the studies behind the numbers, and report them.")

Quick = Annotated[
    bool, typer.Option("--quick", help="Enough of it to look at, in minutes rather than hours.")
]
ReportFolder = Annotated[
    Path,
    typer.Option(
        "--report", metavar="DIR", help="Where the report is written, with --json as well."
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="FILE", help="A data set to evaluate as well. Repeat it."),
]
Only = Annotated[
    list[str] | None,
    typer.Option("--study", metavar="NAME", help="Only this study; see --list. Repeat it."),
]


@command(
    app,
    "lpf experiment paper --quick",
    "lpf experiment paper --data fever.jsonl --report report",
)
def paper(
    quick: Quick = False,
    report: ReportFolder = Path("experiment-report"),
    data: Files = None,
    study: Only = None,
    list_studies: Annotated[
        bool, typer.Option("--list", help="Name the studies and how much is to be run; run none.")
    ] = False,
    workers: Workers = 0,
    keep: Keep = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the paper's tables and figures, with what the paper prints beside them.

    Results are kept: interrupted, the same command goes on where it stopped; done before, it only
    writes the report again.
    """
    from lpf.workspace.training_runs import require_torch

    require_torch()
    from lpf.cli.progress import keeping_folder, watched
    from lpf_paper.experiment import ExperimentRun, command_line
    from lpf_paper.plan import full_plan, quick_plan

    plan = (quick_plan if quick else full_plan)(tuple(data or ()))
    folder = keeping_folder(keep)
    with watched("experiment") as progress:
        run = ExperimentRun(
            plan,
            folder,
            command_line(),
            workers,
            tuple(study or ()),
            None if list_studies else progress,
        )
        if list_studies:
            _list(run, as_json)
            return
        found = run()
    from lpf_paper.report.experiment_report import write_experiment_report

    page = write_experiment_report(found, report)
    if as_json:
        print_document(found.to_dict())
        return
    for sentence in (*found.cautions, *found.summary):
        typer.echo(f"· {sentence}")
    typer.echo(f"Report: {page}")


def _list(run: ExperimentRun, as_json: bool) -> None:
    from lpf.evaluation.result_store import ResultStore

    keeper = ResultStore(run.folder)
    rows = []
    for study in run.studies():
        cells = list(dict.fromkeys(study.cells(run.plan)))
        rows.append(
            {"study": study.name, "cells": len(cells), "missing": len(keeper.missing(cells))}
        )
    if as_json:
        print_document({"studies": rows})
        return
    from lpf.cli.terminal import console, table

    headings = ("study", "cells", "missing")
    shown = ([str(row[heading]) for heading in headings] for row in rows)
    console().print(table(headings, shown, right=headings[1:]))
