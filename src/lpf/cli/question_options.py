"""The options of a question, as ``query`` and ``batch`` take them.

None leaves the workspace's own setting.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import moment

if TYPE_CHECKING:
    from lpf.types import QueryOptions

HOW = "How to answer"
WHICH = "Which evidence counts"

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
NearText = Annotated[
    str | None, typer.Option(help="Prefer items near these words.", rich_help_panel=WHICH)
]
AsOf = Annotated[
    str | None,
    typer.Option(help="As dated by then; UTC without a zone.", rich_help_panel=WHICH),
]
AsyncAudit = Annotated[
    bool, typer.Option("--async-audit", help="Answer before the record is on disk.")
]

# Parameters of the commands, and what QueryOptions calls them.
FIELDS = {
    "variant": "variant",
    "mode": "mode",
    "sampler": "sampler",
    "samples": "n_samples",
    "temperature": "temperature",
    "alpha": "alpha",
    "uncertainty": "uncertainty_samples",
    "fallback": "fallback",
    "seed": "seed",
    "top_k": "top_k",
    "min_credibility": "min_credibility",
    "text": "query_text",
    "as_of": "as_of",
}


def options_given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The options among a command's ``parameters``, checked as far as no workspace is needed."""
    given = {
        field: parameters[name]
        for name, field in FIELDS.items()
        if parameters.get(name) is not None
    }
    if "as_of" in given:
        given["as_of"] = moment(given["as_of"], "--as-of")
    return given


def changed(defaults: QueryOptions, given: Mapping[str, Any]) -> QueryOptions:
    """The workspace's options with those that were given in their place."""
    return replace(defaults, **given)
