"""``lpf query``: asks one question."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lpf.cli.common import AsJson, WorkspaceFolder, command, opened, print_document
from lpf.cli.question_options import (
    Alpha,
    AsOf,
    AsyncAudit,
    Draws,
    Fallback,
    MinCredibility,
    Mode,
    NearText,
    Sampler,
    Samples,
    Seed,
    Temperature,
    TopK,
    Variant,
    changed,
    named_as_given,
    options_given,
)

if TYPE_CHECKING:
    from lpf.results import QueryResult
    from lpf.workspace import Workspace


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
    text: NearText = None,
    as_of: AsOf = None,
    async_audit: AsyncAudit = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Ask what is true of an entity: a probability for every value, and where it comes from."""
    given = options_given(locals())
    with opened(workspace) as space, named_as_given(given):
        options = changed(space.settings.query, given)
        result = space.query(entity, predicate, options, "async" if async_audit else "sync")
        texts = {} if as_json else _texts(space, result)
    # Only now: what is closed is recorded, and an answer that is not must not be shown.
    if as_json:
        print_document(result.to_dict())
    else:
        _show(result, texts)


def _texts(workspace: Workspace, result: QueryResult) -> dict[str, str]:
    found = workspace.evidence.get_many(result.evidence_chain)
    return {name: stored.evidence.text_content for name, stored in found.items()}


def _show(result: QueryResult, texts: dict[str, str]) -> None:
    from lpf.cli.answer_view import show_answer
    from lpf.cli.rendering import console

    show_answer(console(), result, texts)
