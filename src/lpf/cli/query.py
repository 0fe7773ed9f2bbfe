"""``lpf query``: asks one question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, moment, opened, print_document

if TYPE_CHECKING:
    from lpf.results import QueryResult
    from lpf.types import QueryOptions
    from lpf.workspace import Workspace

HOW = "How to answer"
WHICH = "Which evidence counts"

# Shared with batch: options of a question. None leaves the workspace's own setting.
Variant = Annotated[str | None, typer.Option(help="spn or learned.", rich_help_panel=HOW)]
Mode = Annotated[str | None, typer.Option(help="robust or paper.", rich_help_panel=HOW)]
Sampler = Annotated[
    str | None,
    typer.Option(
        help="mean, moments, plain, antithetic, orthogonal or sobol.", rich_help_panel=HOW
    ),
]
Samples = Annotated[int | None, typer.Option(help="Samples an item.", rich_help_panel=HOW)]
Temperature = Annotated[float | None, typer.Option(help="Of the decoder.", rich_help_panel=HOW)]
Alpha = Annotated[float | None, typer.Option(help="Paper mode's α.", rich_help_panel=HOW)]
Seed = Annotated[int | None, typer.Option(help="Of all that is drawn.", rich_help_panel=HOW)]
Draws = Annotated[
    int | None,
    typer.Option(
        "--uncertainty", metavar="N", help="Split the doubt with N draws.", rich_help_panel=HOW
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option(help="average or learned, where no circuit covers it.", rich_help_panel=HOW),
]
TopK = Annotated[int | None, typer.Option(help="At most so many items.", rich_help_panel=WHICH)]
MinCredibility = Annotated[
    float | None, typer.Option(help="Leave items below it out.", rich_help_panel=WHICH)
]
AsOf = Annotated[
    str | None,
    typer.Option(help="As known then; UTC without a zone.", rich_help_panel=WHICH),
]
AsyncAudit = Annotated[
    bool, typer.Option("--async-audit", help="Answer before the record is on disk.")
]


def register(app: typer.Typer) -> None:
    command(
        app,
        "lpf query C0001 compliance_level",
        "lpf query C0001 --mode paper --alpha 2 --json",
    )(query)


def query(
    entity: Annotated[str, typer.Argument(help="About whom.")],
    predicate: Annotated[
        str | None, typer.Argument(help="What; may be left out where the schema has only one.")
    ] = None,
    variant: Variant = None,
    mode: Mode = None,
    sampler: Sampler = None,
    samples: Samples = None,
    temperature: Temperature = None,
    alpha: Alpha = None,
    uncertainty: Draws = None,
    fallback: Fallback = None,
    seed: Seed = None,
    top_k: TopK = None,
    min_credibility: MinCredibility = None,
    text: Annotated[
        str | None, typer.Option(help="Prefer items near these words.", rich_help_panel=WHICH)
    ] = None,
    as_of: AsOf = None,
    async_audit: AsyncAudit = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is true of an entity: a probability for every value, and where it comes from."""
    given = {
        "variant": variant,
        "mode": mode,
        "sampler": sampler,
        "n_samples": samples,
        "temperature": temperature,
        "alpha": alpha,
        "uncertainty_samples": uncertainty,
        "fallback": fallback,
        "seed": seed,
        "top_k": top_k,
        "min_credibility": min_credibility,
        "query_text": text,
        "as_of": moment(as_of, "--as-of"),
    }
    with opened(workspace) as space:
        options = changed(space.settings.query, given)
        result = space.query(entity, predicate, options, "async" if async_audit else "sync")
        texts = {} if as_json else _texts(space, result)
    # Only now: what is closed is recorded, and an answer that is not must not be shown.
    if as_json:
        print_document(result.to_dict())
    else:
        _show(result, texts)


def changed(defaults: QueryOptions, given: dict[str, Any]) -> QueryOptions:
    """The workspace's options with those that were given in their place."""
    return replace(defaults, **{name: value for name, value in given.items() if value is not None})


def _texts(workspace: Workspace, result: QueryResult) -> dict[str, str]:
    found = workspace.evidence.get_many(result.evidence_chain)
    return {name: stored.evidence.text_content for name, stored in found.items()}


def _show(result: QueryResult, texts: dict[str, str]) -> None:
    from lpf.cli.answer_view import show_answer
    from lpf.cli.rendering import console

    show_answer(console(), result, texts)
