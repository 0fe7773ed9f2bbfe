"""The options of a question, as ``query`` and ``batch`` take them.

None leaves the workspace's own setting.

The words a question was asked with: kept beside its record, until they are erased.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import moment
from lpf.errors import ConfigError, LedgerBrokenError

if TYPE_CHECKING:
    from lpf.ledger import StoredRecord
    from lpf.types import QueryOptions
    from lpf.workspace import Workspace


HOW = "How to answer"
WHICH = "Which evidence counts"


def default(number: float) -> str:
    """How the help names the default of a setting: written out there, since help loads nothing."""
    return f"{number} unless lpf.toml says otherwise."


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
        "--uncertainty",
        metavar="N",
        help="How far the answer spreads over N draws, and why; at least 2.",
        rich_help_panel=HOW,
    ),
]
Fallback = Annotated[
    str | None,
    typer.Option(help="average or learned, where no circuit covers it.", rich_help_panel=HOW),
]
TopK = Annotated[
    int | None, typer.Option(help=f"At most so many items. {default(5)}", rich_help_panel=WHICH)
]
MinCredibility = Annotated[
    float | None,
    typer.Option(
        help=f"Leave items below it out; 0 counts all. {default(0.5)}", rich_help_panel=WHICH
    ),
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
OPTIONS = {field: "--" + name.replace("_", "-") for name, field in FIELDS.items()}
FIELD_NAMED = re.compile(rf"\b(?:options\.)?({'|'.join(OPTIONS)}): ")
LARGEST_SEED = 2**53 - 1  # records hold it as a number of JSON


def options_given(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The options among a command's ``parameters``, checked as far as no workspace is needed."""
    given = {
        field: parameters[name]
        for name, field in FIELDS.items()
        if parameters.get(name) is not None
    }
    if "as_of" in given:
        given["as_of"] = moment(given["as_of"], "--as-of")
    _check(given)
    return given


def _check(given: Mapping[str, Any]) -> None:
    """What would fail only when the answer is computed or recorded."""
    if not 0 <= given.get("seed", 0) <= LARGEST_SEED:
        raise ConfigError(f"--seed: must lie in [0, 2**53 - 1], got {given['seed']}.")
    if given.get("uncertainty_samples") == 1:
        raise ConfigError("--uncertainty: must be at least 2 draws, or 0 for none, got 1.")
    if not given.get("query_text", "words").strip():
        raise ConfigError("--text: must be words, got an empty text.")
    if given.get("n_samples", 1) < 1:
        raise ConfigError(f"--samples: must be at least 1, got {given['n_samples']}.")


@contextmanager
def named_as_given(given: Mapping[str, Any]) -> Iterator[None]:
    """Errors name settings as the library does; a user knows the option, or the file."""

    def name(found: re.Match[str]) -> str:
        field = found[1]
        return f"{OPTIONS[field] if field in given else f'lpf.toml: query.{field}'}: "

    try:
        yield
    except ConfigError as error:
        error.args = (FIELD_NAMED.sub(name, str(error), count=1),)
        raise


def changed(defaults: QueryOptions, given: Mapping[str, Any]) -> QueryOptions:
    """The workspace's options with those that were given in their place."""
    return replace(defaults, **given)


COMMITMENT = "query_text"


def query_words(workspace: Workspace, record: StoredRecord) -> str | None:
    """None where it was asked without any, or they were erased."""
    commitment = record.fields.get(COMMITMENT)
    kept = commitment and workspace.records.query_text(bytes.fromhex(commitment))
    return kept.text if kept else None


def why_no_words(workspace: Workspace, record_id: str) -> str | None:
    """Why there is nothing to erase; None where there is something, if only changed words."""
    record = workspace.records.get(record_id)
    if COMMITMENT not in record.fields:
        return "was asked without words"
    try:
        return None if query_words(workspace, record) is not None else "its words are erased"
    except LedgerBrokenError:
        return None
