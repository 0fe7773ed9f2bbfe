"""``lpf evidence``: list, show, disclose, search, reindex and erase the evidence in the store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import (
    MOST_LISTED,
    AsJson,
    WorkspaceFolder,
    Yes,
    command,
    confirm,
    exit_check_failed,
    group,
    open_workspace,
    print_document,
    progress,
    warn_if_cut,
    warn_of_damage,
)
from lpf.cli.safe_output import one_line, quoted
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.storage.evidence import DamagedItem, StoredEvidence
    from lpf.workspace import Workspace

app = group("evidence", "Evidence: list, show, search, erase.")

EvidenceId = Annotated[str, typer.Argument(metavar="ID", help="Item ID.")]
EvidenceIds = Annotated[list[str], typer.Argument(metavar="ID", help="Item IDs.")]
Entity = Annotated[str | None, typer.Option(help="Only items about this entity.")]
Predicate = Annotated[str | None, typer.Option(help="Only items about this predicate.")]
Limit = Annotated[int, typer.Option(min=1, max=MOST_LISTED, help="Most items to list.")]

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
    """List items in the order they were added. Exit code 1 if some are damaged."""
    damaged: list[DamagedItem] = []
    with open_workspace(workspace) as space:
        _require_predicate(space, predicate)
        items = space.evidence.page(entity, predicate, limit, damaged=damaged)
    warn_if_cut(len(items) + len(damaged), limit)
    if as_json:
        print_document(
            {"evidence": [_document(stored) for stored in items], "damaged": _damage(damaged)}
        )
    else:
        _show_list(items)
    _end_if_damaged(damaged)


@command(app, "lpf evidence show C0001_E001")
def show(
    evidence_id: EvidenceId, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Show one item with all its fields, and the salted hash by which records refer to it."""
    with open_workspace(workspace) as space:
        stored = space.evidence.get(evidence_id)
    document = {**_document(stored), "commitment": stored.commitment.hex()}
    if as_json:
        print_document(document)
        return
    from lpf.cli.terminal import console, print_pairs

    given = {name: value for name, value in document.items() if value is not None}
    print_pairs(console(), [(name, str(value)) for name, value in given.items()])


@command(app, "lpf evidence disclose C0001_E001 --record INF00000042 --out E001.json")
def disclose(
    evidence_id: EvidenceId,
    out: Annotated[Path, typer.Option("--out", "-o", help="Write the disclosure to this file.")],
    record: Annotated[
        list[str] | None,
        typer.Option(metavar="ID", help="A record that must name the text; repeat for more."),
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Reveal an item's text, claim and salt, so that an auditor can tie it to a record.

    With the salt, check_bundle.py recomputes the hash that the record holds. Whoever gets the file
    can read the text.
    """
    from lpf.ledger import canonical
    from lpf.storage.atomic_files import write_atomically

    with open_workspace(workspace) as space:
        document = space.disclose(evidence_id, record or [])
    write_atomically(out, canonical(document) + b"\n")
    if as_json:
        shown = {name: document[name] for name in ("evidence_id", "commitment")}
        print_document({"file": str(out), **shown, "records": record or []})
        return
    typer.echo(f"The text of {one_line(evidence_id)} is in {one_line(out)}.")
    typer.echo(f"To check it: python check_bundle.py BUNDLE --disclosure {quoted(out)}")


@command(app, 'lpf evidence search "late filings" --limit 5')
def search(
    text: Annotated[str, typer.Argument(help="Text to look for.")],
    entity: Entity = None,
    predicate: Predicate = None,
    limit: Limit = 10,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Find items close in meaning to a text, across all entities."""
    if not text.strip():
        raise ConfigError("must not be blank.", field="TEXT")
    damaged: list[DamagedItem] = []
    with open_workspace(workspace) as space:
        _require_predicate(space, predicate)
        hits = space.vectors.search(text, limit, entity_id=entity, predicate=predicate)
        items = space.evidence.get_many([hit.evidence_id for hit in hits], damaged)
    pairs = [(hit.similarity, items[hit.evidence_id]) for hit in hits if hit.evidence_id in items]
    if as_json:
        print_document(
            {
                "hits": [{"similarity": cosine, **_document(stored)} for cosine, stored in pairs],
                "damaged": _damage(damaged),
            }
        )
    else:
        _show_list([stored for _, stored in pairs], [similarity for similarity, _ in pairs])
    _end_if_damaged(damaged)


@command(app, "lpf evidence reindex")
def reindex(workspace: WorkspaceFolder = None, as_json: AsJson = False) -> None:
    """Read what the current reader has not read yet, and rebuild the search index."""
    with open_workspace(workspace) as space, progress("reading") as report:
        read = space.reindex(report)
        manifest = space.vectors.manifest
    if as_json:
        print_document({"read": read, "vectors": manifest.count, "recall": manifest.recall})
        return
    typer.echo(f"Read {read:,} items; the index has {manifest.count:,} vectors.")


@command(app, "lpf evidence erase C0001_E001 --yes")
def erase(
    evidence_ids: EvidenceIds,
    yes: Yes = False,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Erase items: texts, vectors and everything computed from them. Their IDs stay reserved.

    Records that name them stay valid, but can no longer be replayed from the texts. Erasing
    rewrites files, which takes as long for one item as for many: name them in one call. Exit code 1
    if something remains; it says what, and how to finish.
    """
    with open_workspace(workspace) as space:
        _require_known(space, evidence_ids)
        confirm(", ".join(evidence_ids), yes)
        outcome = space.erase(*evidence_ids)
    if as_json:
        print_document(
            {
                "erased": evidence_ids,
                "pending": bool(outcome.warnings),
                "rejects_removed": outcome.rejects_removed,
                "warnings": list(outcome.warnings),
            }
        )
    else:
        state = "Erased, but not finished" if outcome.warnings else "Erased"
        typer.echo(f"{state}: {', '.join(map(one_line, evidence_ids))}.")
        for warning in outcome.warnings:
            typer.echo(f"warning: {one_line(warning)}", err=True)
    if outcome.warnings:
        exit_check_failed()


def _require_predicate(workspace: Workspace, predicate: str | None) -> None:
    if predicate is not None:
        workspace.predicate(predicate)


def _require_known(workspace: Workspace, evidence_ids: Sequence[str]) -> None:
    """Raise UnknownEvidenceError before asking for confirmation. An interrupted erasure may be
    repeated."""
    unfinished = {item.evidence_id for item in workspace.evidence.pending_erasures()}
    for evidence_id in evidence_ids:
        if evidence_id not in unfinished:
            workspace.evidence.require_known(evidence_id)


def _damage(damaged: Sequence[DamagedItem]) -> list[dict[str, str]]:
    return [{"evidence_id": item.evidence_id, "reason": item.reason} for item in damaged]


def _end_if_damaged(damaged: Sequence[DamagedItem]) -> None:
    if damaged:
        warn_of_damage(damaged)
        exit_check_failed()


def _document(stored: StoredEvidence) -> dict[str, Any]:
    from lpf.storage.values import iso, to_micros

    plain = {name: getattr(stored.evidence, name) for name in FIELDS}
    if stored.evidence.timestamp is not None:
        plain["timestamp"] = iso(to_micros(stored.evidence.timestamp))
    return {**plain, "ingested_at": iso(stored.ingested_at)}


def _show_list(items: Sequence[StoredEvidence], similarities: Sequence[float] = ()) -> None:
    from lpf.cli.terminal import console, number, table

    if not items:
        typer.echo("No items found.")
        return
    names = ["item", "entity", "predicate", "credibility", "date", "text"]
    rows = [_row(stored) for stored in items]
    if similarities:
        names = ["cosine", *names]
        rows = [[number(cosine), *row] for cosine, row in zip(similarities, rows, strict=True)]
    right, optional = ("cosine", "credibility"), ("predicate", "date")
    console().print(table(names, rows, right=right, flexible="text", optional=optional))


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
