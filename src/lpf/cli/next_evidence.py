"""``lpf next``: which evidence or fact about an entity is worth collecting next."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, open_workspace, print_document
from lpf.cli.options import fields_as_flags, fields_as_given, with_options
from lpf.errors import ConfigError
from lpf.options import QueryOptions

if TYPE_CHECKING:
    from rich.console import Console

    from lpf.explain import NextEvidence, Offer

# Options of a question that say how sure an answer is: here it is not given.
NOT_HERE = ("coverage", "coverage_by_value", "max_risk", "uncertainty_samples")
FLAGS = {name: f"--{name}" for name in ("steps", "enough", "least", "pool")} | {"costs": "--cost"}


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf next S10",
        'lpf next S10 --steps 3 --cost "source:goods received=0.5"',
        "lpf next S10 --steps 5 --enough 0.95",
        name="next",
    )(with_options(QueryOptions, without=NOT_HERE)(next_evidence))


def next_evidence(
    entity_id: Annotated[str, typer.Argument(metavar="ENTITY", help="Entity ID.")],
    predicate: Annotated[
        str | None, typer.Argument(help="Predicate name; not needed if the schema has only one.")
    ] = None,
    *,
    given: Mapping[str, Any],
    steps: Annotated[
        int, typer.Option(metavar="N", help="Plan this many steps, one after the other.")
    ] = 1,
    cost: Annotated[
        list[str] | None,
        typer.Option(metavar="KIND=NUMBER", help="What a kind costs; 1 if not given. Repeatable."),
    ] = None,
    enough: Annotated[
        float | None,
        typer.Option(
            metavar="X", help="Stop when the top value is expected to have this probability."
        ),
    ] = None,
    least: Annotated[
        float,
        typer.Option(metavar="BITS", help="What is expected to tell less is not worth collecting."),
    ] = 0.01,
    pool: Annotated[
        int,
        typer.Option(metavar="N", help="Draw at most this many stored items of each kind."),
    ] = 200,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Show what to collect next about an entity: how many bits of doubt one more item of each kind,
    or a related fact, is expected to remove, and the chance that it changes the answer.

    What an unread item may say is taken from the stored items of other entities. Kinds are any,
    source:NAME, type:NAME, credibility:LOW-HIGH and fact:PREDICATE. Nothing is recorded.
    """
    from lpf.explain import CollectionPlan

    costs = dict(_cost(text) for text in cost or ())
    with fields_as_flags(FLAGS):
        plan = CollectionPlan(steps, costs, enough, least, pool)
    with (
        open_workspace(workspace) as space,
        fields_as_given(QueryOptions, given),
        fields_as_flags(FLAGS),
    ):
        options = replace(
            space.settings.query,
            **{**given, "coverage": None, "coverage_by_value": False, "max_risk": None},
        )
        plan = replace(plan, seed=options.seed)
        found = space.next_evidence(entity_id, predicate, plan, options)
    _show(found, as_json=as_json)


def _cost(text: str) -> tuple[str, float]:
    kind, equals, number = text.rpartition("=")
    try:
        if not equals or not kind:
            raise ValueError(text)
        return kind, float(number)
    except ValueError:
        raise ConfigError(
            f"must be KIND=NUMBER, such as any=2.5, got {text!r}. Nothing was computed.",
            field="--cost",
        ) from None


def _show(found: NextEvidence, *, as_json: bool) -> None:
    from lpf.cli.terminal import console
    from lpf.explain import next_sentences

    lines = next_sentences(found)
    if as_json:
        print_document(found.to_dict() | {"sentences": lines})
    else:
        _print(console(), found, lines)


def _print(output: Console, found: NextEvidence, lines: Sequence[str]) -> None:
    from rich.text import Text

    from lpf.cli.safe_output import one_line
    from lpf.cli.terminal import distribution, indented, percent, print_pairs

    head = one_line(f"{found.entity_id} · {found.predicate}: ")
    verdict = f"{found.value}, {percent(found.confidence)}"
    output.print(Text.assemble(head, (one_line(verdict), "bold")))
    output.print()
    shares = dict(zip(found.values, found.probabilities.tolist(), strict=True))
    output.print(indented(distribution(shares, output.width)))
    output.print()
    for line in lines:
        output.print(indented(Text(one_line(line))))
    output.print()
    _print_tables(output, found)
    closing = [("left out", one) for one in found.left_out]
    closing += [("note", one) for one in found.notes]
    print_pairs(output, [*closing, ("record", "not recorded")])


def _print_tables(output: Console, found: NextEvidence) -> None:
    from lpf.cli.terminal import print_table, table

    costly = bool(found.plan.costs)
    columns = ["one more", "bits", "changes", "then"]
    columns += ["cost", "bits per cost"] if costly else []
    right = columns[1:]
    rows = [_row(one, costly=costly) for one in found.offers]
    body = table([*columns, "based on"], rows, right=right, optional=("then", "cost"))
    print_table(output, f"Of {found.doubt:.2f} bits of doubt", body)
    output.print()
    if found.plan.steps > 1 and found.steps:
        headings = [
            "step",
            "one more",
            "bits",
            "so far",
            "then",
            *(["cost so far"] if costly else []),
        ]
        lines = [
            [
                str(number),
                step.offer.kind,
                _bits(step.offer.bits),
                _bits(step.bits),
                _whole_percent(step.offer.confidence),
                *([f"{step.cost:g}"] if costly else []),
            ]
            for number, step in enumerate(found.steps, 1)
        ]
        numbers = [one for one in headings if one != "one more"]
        print_table(output, "One after the other", table(headings, lines, right=numbers))
        output.print()


def _row(offer: Offer, *, costly: bool) -> list[str]:
    from lpf.explain.next_sentences import basis

    error = f" ± {offer.error:.2f}" if offer.error >= 0.005 else ""
    row = [offer.kind, _bits(offer.bits) + error]
    row += [_whole_percent(offer.changes), _whole_percent(offer.confidence)]
    row += [f"{offer.cost:g}", _bits(offer.bits_per_cost)] if costly else []
    return [*row, basis(offer)]


def _bits(bits: float) -> str:
    return f"{bits:.3f}" if math.isfinite(bits) else "?"


def _whole_percent(share: float) -> str:
    return f"{100 * share:.1f} %"
