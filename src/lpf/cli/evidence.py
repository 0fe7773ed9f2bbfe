"""``lpf evidence``: what is in the store, found and erased."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    AsJson,
    WorkspaceFolder,
    Yes,
    command,
    confirm,
    group,
    opened,
    print_document,
    progress,
    tell_of_limit,
)
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.storage.evidence import StoredEvidence
    from lpf.workspace import Workspace

app = group("evidence", "Evidence: list, show, search, erase.")

EvidenceId = Annotated[str, typer.Argument(metavar="ID", help="The item.")]
EvidenceIds = Annotated[list[str], typer.Argument(metavar="ID...", help="The items.")]
Entity = Annotated[str | None, typer.Option(help="Only about this one.")]
Predicate = Annotated[str | None, typer.Option(help="Only about this question.")]
Limit = Annotated[int, typer.Option(min=1, help="At most so many.")]

FIELDS = (
    "evidence_id",
    "entity_id",
    "predicate",
    "text_content",
    "claim",
    "credibility",
    "timestamp",
    "evidence_type",
    "source",
    "report_id",
    "supports_value",
)


@command(app, "lpf evidence list --entity C0001", name="list")
def list_items(
    entity: Entity = None,
    predicate: Predicate = None,
    limit: Limit = 100,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List items in the order they were added."""
    with opened(workspace) as space:
        _require_predicate(space, predicate)
        found = space.evidence.page(entity, predicate, limit)
    tell_of_limit(len(found), limit)
    if as_json:
        print_document({"evidence": [_document(stored) for stored in found]})
    else:
        _show_list(found)


@command(app, "lpf evidence show C0001_E001")
def show(
    evidence_id: EvidenceId, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Show one item with all its fields, and the salted hash that records name it by."""
    with opened(workspace) as space:
        stored = space.evidence.get(evidence_id)
    document = {**_document(stored), "commitment": stored.commitment.hex()}
    if as_json:
        print_document(document)
        return
    from lpf.cli.terminal import console, print_pairs

    given = {name: value for name, value in document.items() if value is not None}
    print_pairs(console(), [(name, str(value)) for name, value in given.items()])


@command(app, 'lpf evidence search "late filings" --limit 5')
def search(
    text: Annotated[str, typer.Argument(help="What the items should be about.")],
    entity: Entity = None,
    predicate: Predicate = None,
    limit: Limit = 10,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Find items near in meaning, of all entities."""
    if not text.strip():
        raise ConfigError("evidence search: say what the items should be about, got no words.")
    with opened(workspace) as space:
        _require_predicate(space, predicate)
        hits = space.vectors.search(text, limit, entity_id=entity, predicate=predicate)
        found = space.evidence.get_many([hit.evidence_id for hit in hits])
    pairs = [(hit.similarity, found[hit.evidence_id]) for hit in hits if hit.evidence_id in found]
    if as_json:
        print_document(
            {"hits": [{"similarity": near, **_document(stored)} for near, stored in pairs]}
        )
    else:
        _show_list([stored for _, stored in pairs], [near for near, _ in pairs])


@command(app, "lpf evidence reindex")
def reindex(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Read what the current reader has not read yet, and make the search index anew."""
    with opened(workspace) as space, progress("reading") as report:
        read = space.reindex(report)
        manifest = space.vectors.manifest
    if as_json:
        print_document({"read": read, "vectors": manifest.count, "recall": manifest.recall})
        return
    typer.echo(f"{read:,} items were read; the index holds {manifest.count:,} vectors.")


@command(app, "lpf evidence erase C0001_E001 --yes")
def erase(
    evidence_ids: EvidenceIds,
    yes: Yes = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Destroy items: texts, vectors and all that was computed from them. Their ids stay taken.

    Records that name them stay valid, but can no longer be recomputed from the texts. Files are
    rewritten, which takes as long for one item as for many: name them in one call.
    """
    with opened(workspace) as space:
        _require_known(space, evidence_ids)
        confirm(", ".join(evidence_ids), yes)
        outcome = space.erase(*evidence_ids)
    if as_json:
        print_document(
            {
                "erased": evidence_ids,
                "rejects_removed": outcome.rejects_removed,
                "warnings": list(outcome.warnings),
            }
        )
        return
    typer.echo(f"Erased: {', '.join(evidence_ids)}.")
    for warning in outcome.warnings:
        typer.echo(f"warning: {warning}", err=True)


def _require_predicate(workspace: Workspace, predicate: str | None) -> None:
    if predicate is not None:
        workspace.predicate(predicate)


def _require_known(workspace: Workspace, evidence_ids: Sequence[str]) -> None:
    """Before anybody is asked. What was begun and interrupted may be erased again."""
    begun = {item.evidence_id for item in workspace.evidence.pending_erasures()}
    for evidence_id in evidence_ids:
        if evidence_id not in begun:
            workspace.evidence.get(evidence_id)


def _document(stored: StoredEvidence) -> dict[str, Any]:
    from lpf.storage.values import iso, to_micros

    plain = {name: getattr(stored.evidence, name) for name in FIELDS}
    if stored.evidence.timestamp is not None:
        plain["timestamp"] = iso(to_micros(stored.evidence.timestamp))
    return {**plain, "ingested_at": iso(stored.ingested_at)}


def _show_list(found: Sequence[StoredEvidence], near: Sequence[float] = ()) -> None:
    from lpf.cli.terminal import console, number, table

    if not found:
        typer.echo("There are no such items.")
        return
    names = ["item", "entity", "predicate", "credible", "date", "text"]
    rows = [_row(stored) for stored in found]
    if near:
        names = ["near", *names]
        rows = [[number(cosine), *row] for cosine, row in zip(near, rows, strict=True)]
    less = ("date", "predicate")
    made = table(names, rows, right=("near", "credible"), flexible="text", optional=less)
    console().print(made)


def _row(stored: StoredEvidence) -> list[str]:
    from lpf.cli.terminal import number, start_of, when

    item = stored.evidence
    return [
        item.evidence_id,
        item.entity_id,
        item.predicate,
        number(item.credibility),
        when(item.timestamp)[:10],
        start_of(item.text_content),
    ]
