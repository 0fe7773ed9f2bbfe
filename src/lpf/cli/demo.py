"""``lpf demo``: the whole way once, and where to go next."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, command, print_document

if TYPE_CHECKING:
    from rich.console import Console

    from lpf.workspace.synthetic import Demonstration

FOLDER = Path("lpf-demo")
ENTITY = "C0001"
BEFORE = "2025-01-01"  # all notes are older, the inspector's finding is of today

DemoFolder = Annotated[
    Path, typer.Option("--workspace", metavar="DIR", help="Where the demo's workspace is kept.")
]
WorkedExample = Annotated[
    bool,
    typer.Option(
        "--worked-example",
        help="The paper's worked question from its printed factors instead; trains nothing.",
    ),
]


def register(app: typer.Typer) -> None:
    command(app, "lpf demo", "lpf demo --workspace /tmp/demo --json")(demo)


def demo(
    workspace: DemoFolder = FOLDER, worked_example: WorkedExample = False, as_json: AsJson = False
) -> None:
    """Train on made-up companies, ask how compliant C0001 is, and verify the record.

    Makes a workspace, generates 900 company years with five notes each, reads and trains (about
    two minutes the first time, seconds after that), asks both variants, makes the value a known
    fact and asks again.
    """
    if worked_example:
        _show_worked_example(as_json)
        return
    from lpf.cli.progress import shown
    from lpf.workspace.synthetic import demonstrate

    with shown() as watching:
        done = demonstrate(workspace, watching)
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
    from lpf.cli.terminal import console

    output = console()
    how = "was trained just now" if done.was_trained else "is from an earlier run"
    output.rule(f"1  A model of five seeds {how}", align="left")
    _show_metrics(output, done)
    output.rule("2  LPF-SPN: factors multiplied in the circuit", align="left")
    show_answer(output, done.spn, done.texts)
    _show_truth(output, done)
    output.rule("3  LPF-Learned: weights learned, one latent code decoded", align="left")
    show_answer(output, done.learned, done.texts)
    output.rule(f"4  An inspector found: {done.label}. The same question again", align="left")
    show_answer(output, done.canonical, {})
    output.rule("5  The ledger", align="left")
    holds = "[green]holds[/green]" if done.ledger.ok else "[red]does not hold[/red]"
    output.print(f"  {done.ledger.records} records, recomputed and compared: the ledger {holds}.\n")
    _show_next(output, done)


def _show_metrics(output: Console, done: Demonstration) -> None:
    from lpf.cli.terminal import table

    predicate = done.spn.predicate
    rows = []
    for variant in ("spn", "learned"):
        found = {
            name: done.metrics[f"{predicate}/test/{variant}/{name}"]
            for name in ("accuracy", "nll", "brier", "ece", "ece_null")
        }
        rows.append(
            [
                f"LPF-{'SPN' if variant == 'spn' else 'Learned'}",
                f"{found['accuracy']:.3f}",
                f"{found['nll']:.3f}",
                f"{found['brier']:.3f}",
                f"{found['ece']:.3f}",
                f"{found['ece_null']:.3f}",
            ]
        )
    names = ("135 test companies", "accuracy", "NLL", "Brier", "ECE", "perfect ECE up to")
    output.print(table(names, rows, right=names[1:]))
    output.print()


def _show_truth(output: Console, done: Demonstration) -> None:
    """Nobody outside a generated world could know it."""
    told = " · ".join(f"{value} {100 * share:.1f} %" for value, share in done.truth.items())
    output.print(f"\n  A reader who misses nothing would say, from these notes: {told}")
    output.print(f"  The company's real value, which no note tells: [bold]{done.label}[/bold]\n")


def _show_next(output: Console, done: Demonstration) -> None:
    first, predicate = done.spn.audit_ptr, done.spn.predicate
    output.print("[bold]Where to go next[/bold]")
    output.print(f"  cd {done.folder}", highlight=False)
    for words, what in (
        (f"lpf query {ENTITY} --as-of {BEFORE} {predicate}", "before the inspector came"),
        (f"lpf ledger show {first}", "the record of the first answer"),
        (f"lpf ledger replay {first} --deep", "the answer, computed again"),
        ("lpf evidence search 'late filings'", "the evidence, by meaning"),
        ("lpf models card", "the model and how good it is"),
        ("lpf train --help", "train on data of your own"),
    ):
        output.print(f"  {words:<53}{what}", highlight=False)
