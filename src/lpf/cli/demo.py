"""``lpf demo``: train, ask and verify once on synthetic data, and what to try next."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, command, print_document
from lpf.cli.safe_output import quoted

if TYPE_CHECKING:
    from rich.console import Console

    from lpf.workspace.synthetic import Demonstration

FOLDER = Path("lpf-demo")
ENTITY = "C0001"
# The README's first command on one's own data.
OWN_DATA = 'lpf init suppliers --predicate "supplier=unreliable,reliable" && cd suppliers'
BEFORE = "2025-01-01"  # all notes are older; the inspector's finding is dated today

DemoFolder = Annotated[
    Path, typer.Option("--workspace", metavar="DIR", help="Folder of the demo's workspace.")
]
WorkedExample = Annotated[
    bool,
    typer.Option(
        "--worked-example",
        help="Answer the paper's worked example from its printed factors; trains nothing.",
    ),
]


def register(app: typer.Typer) -> None:
    command(app, "lpf demo", "lpf demo --workspace /tmp/demo --json")(demo)


def demo(
    workspace: DemoFolder = FOLDER, worked_example: WorkedExample = False, as_json: AsJson = False
) -> None:
    """Train on synthetic companies, ask how compliant C0001 is, and verify the record.

    Creates a workspace, generates 900 company years with five notes each and trains (about a
    minute the first time, seconds after that). Then it asks both variants, adds the true value as
    a known fact, and asks again.
    """
    if worked_example:
        _show_worked_example(as_json)
        return
    from lpf.cli.progress import training_progress
    from lpf.workspace.synthetic import demonstrate

    with training_progress() as callbacks:
        done = demonstrate(workspace, callbacks)
    if as_json:
        print_document(done.to_dict())
    else:
        _show(done)


def _show_worked_example(as_json: bool) -> None:
    from lpf.cli import worked_example

    if as_json:
        typer.echo(worked_example.as_json())
    else:
        worked_example.show()


def _show(done: Demonstration) -> None:
    from lpf.cli.answer_view import show_answer
    from lpf.cli.terminal import console, indented

    output = console()
    how = "trained just now" if done.was_trained else "from an earlier run"
    output.rule(f"1  The model: five seeds, {how}", align="left")
    _show_metrics(output, done)
    output.rule("2  LPF-SPN: factors are multiplied in the circuit", align="left")
    show_answer(output, done.spn, done.texts)
    _show_truth(output, done)
    output.rule("3  LPF-Learned: items are averaged with learned weights", align="left")
    show_answer(output, done.learned, done.texts)
    output.print()
    output.print(indented(done.verdict))
    output.print()
    output.rule(f"4  An inspector finds: {done.label}. The same question again", align="left")
    show_answer(output, done.canonical, {})
    output.print()
    output.rule("5  The ledger", align="left")
    verdict = "[green]intact[/green]" if done.ledger.ok else "[red]not intact[/red]"
    output.print(
        f"  The ledger is {verdict}: {done.ledger.records} records, all hashes recomputed.\n"
    )
    _show_next(output, done)


def _show_metrics(output: Console, done: Demonstration) -> None:
    from lpf.cli.terminal import table

    predicate = done.spn.predicate
    rows = []
    for variant in ("spn", "learned"):
        scores = {
            name: done.metrics[f"{predicate}/test/{variant}/{name}"]
            for name in ("accuracy", "nll", "brier", "ece", "ece_null")
        }
        rows.append(
            [
                f"LPF-{'SPN' if variant == 'spn' else 'Learned'}",
                f"{scores['accuracy']:.3f}",
                f"{scores['nll']:.3f}",
                f"{scores['brier']:.3f}",
                f"{scores['ece']:.3f}",
                f"{scores['ece_null']:.3f}",
            ]
        )
    names = ("135 test companies", "accuracy", "NLL", "Brier", "ECE", "chance")
    output.print(table(names, rows, right=names[1:]))
    output.print("  chance: the ECE that a perfectly calibrated model stays below", style="dim")
    output.print()


def _show_truth(output: Console, done: Demonstration) -> None:
    """The exact answer, which only a generator can know."""
    exact = " · ".join(f"{value} {100 * share:.1f} %" for value, share in done.truth.items())
    output.print(f"\n  Exact answer for these notes: {exact}")
    output.print(f"  True value of the company, which no note states: [bold]{done.label}[/bold]\n")


def _show_next(output: Console, done: Demonstration) -> None:
    first, predicate = done.spn.audit_ptr, done.spn.predicate
    output.print("[bold]What to try next[/bold]")
    activate = activation()
    for line, purpose in (
        *([(activate, "puts lpf on the path")] if activate else []),
        (f"cd {quoted(_from_here(done.folder))}", "the demo's workspace"),
        (f"lpf query {ENTITY} --as-of {BEFORE} {predicate}", "before the inspection"),
        (f"lpf ledger show {first}", "its record"),
        (f"lpf ledger replay {first} --deep", "compute it again"),
        ("lpf evidence search 'late filings'", "search the evidence"),
        ("lpf models card", "the model card"),
        ("cd -", "then your own data, as in the README:"),
    ):
        output.print(f"  {line:<53}# {purpose}", highlight=False, markup=False, soft_wrap=True)
    output.print(f"  {OWN_DATA}", highlight=False, markup=False, soft_wrap=True)


def activation() -> str | None:
    """The command that puts the running lpf on the path; None if it is there already, or if it was
    not installed in a virtual environment."""
    folder = Path(sys.prefix) / "bin"
    found = shutil.which("lpf")
    is_there = found is not None and Path(found).parent.resolve() == folder.resolve()
    if is_there or sys.prefix == sys.base_prefix:
        return None
    return f". {quoted(_from_here(folder / 'activate'))}"


def _from_here(path: Path) -> str:
    """Relative to the current folder if it is in it."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else path)
