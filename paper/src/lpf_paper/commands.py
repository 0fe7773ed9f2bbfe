"""``lpf experiment``: the paper's experimental part, or its theorems alone, run and reported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli import AsJson, Keep, Workers, command, group, print_document

if TYPE_CHECKING:
    from lpf_paper.experiment import ExperimentRun


app = group("experiment", "Run the paper's experiments and report them.")

Quick = Annotated[
    bool, typer.Option("--quick", help="Run with small budgets: minutes instead of hours.")
]
ReportFolder = Annotated[
    Path,
    typer.Option("--report", metavar="DIR", help="Folder for the report, written with --json too."),
]
Files = Annotated[
    list[Path] | None,
    typer.Option("--data", metavar="FILE", help="Also evaluate this data set. Can be repeated."),
]
Only = Annotated[
    list[str] | None,
    typer.Option(
        "--study", metavar="NAME", help="Run only this study; see --list. Can be repeated."
    ),
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
        bool, typer.Option("--list", help="List the studies and how much is missing; run nothing.")
    ] = False,
    workers: Workers = 0,
    keep: Keep = None,
    as_json: AsJson = False,
) -> None:
    """Rebuild the paper's tables and figures and compare them with the printed numbers.

    Results are stored one by one. After an interruption the same command continues where it
    stopped; if everything is there, it only writes the report again.
    """
    _run_studies(quick, report, data, study, workers, keep, as_json, list_studies=list_studies)


@command(
    app,
    "lpf experiment theorems --quick",
    "lpf experiment theorems --report theorems-report",
)
def theorems(
    quick: Quick = False,
    report: ReportFolder = Path("experiment-report"),
    workers: Workers = 0,
    keep: Keep = None,
    as_json: AsJson = False,
) -> None:
    """Check the paper's theorems and propositions by computing them.

    Each gets its bound as stated, a corrected one where that is wrong, what was measured, and a
    verdict. The same as: lpf experiment paper --study theorems.
    """
    _run_studies(quick, report, None, ["theorems"], workers, keep, as_json, all_findings=True)


def _run_studies(
    quick: bool,
    report: Path,
    data: list[Path] | None,
    study: list[str] | None,
    workers: int,
    keep: Path | None,
    as_json: bool,
    *,
    list_studies: bool = False,
    all_findings: bool = False,
) -> None:
    """``all_findings`` prints those of every study, not only the first of each."""
    from lpf.workspace import require_torch

    require_torch()
    from lpf.cli import results_folder, watched
    from lpf_paper.experiment import ExperimentRun, command_line
    from lpf_paper.plan import full_plan, quick_plan

    plan = (quick_plan if quick else full_plan)(tuple(data or ()))
    folder = results_folder(keep)
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
        experiment = run()
    from lpf_paper.report import write_experiment_report

    page = write_experiment_report(experiment, report)
    if as_json:
        print_document(experiment.to_dict())
        return
    findings = [one for study in experiment.studies for one in study.findings]
    for sentence in (*experiment.warnings, *(findings if all_findings else experiment.summary)):
        typer.echo(f"· {sentence}")
    typer.echo(f"Report: {page}")


def _list(run: ExperimentRun, as_json: bool) -> None:
    from lpf.evaluation import ResultStore

    store = ResultStore(run.folder)
    rows = []
    for study in run.studies():
        cells = list(dict.fromkeys(study.cells(run.plan)))
        rows.append(
            {"study": study.name, "cells": len(cells), "missing": len(store.missing(cells))}
        )
    if as_json:
        print_document({"studies": rows})
        return
    from lpf.cli import console, table

    headings = ("study", "cells", "missing")
    shown = ([str(row[heading]) for heading in headings] for row in rows)
    console().print(table(headings, shown, right=headings[1:]))
