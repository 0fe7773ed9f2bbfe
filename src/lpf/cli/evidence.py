"""``lpf evidence``: list, show, edit, disclose, search, reindex and erase evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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
    warn_of_damage,
)
from lpf.cli.safe_output import one_line, quoted
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.storage.evidence import DamagedItem, StoredEvidence
    from lpf.workspace import Workspace

app = group("evidence", "Evidence: list, show, search, edit, erase.")

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


@command(app, "lpf evidence list --entity C0001", "lpf evidence list --after E100", name="list")
def list_items(
    entity: Entity = None,
    predicate: Predicate = None,
    limit: Limit = 100,
    after: Annotated[
        str | None, typer.Option(metavar="ID", help="Start after this item: the next page.")
    ] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """List items in the order they were added, with their labels. A new version counts as added
    when it was made. Exit code 1 if some are damaged."""
    damaged: list[DamagedItem] = []
    with open_workspace(workspace) as space:
        _require_predicate(space, predicate)
        start = 0 if after is None else space.evidence.row_of(after)
        items = space.evidence.page(entity, predicate, limit + 1, start, damaged)
    following = None
    if len(items) > limit:
        items = items[:limit]
        following = items[-1].evidence.evidence_id
        typer.echo(
            f"Only the first {limit:,} are listed; add --after {quoted(following)} for the next "
            "page.",
            err=True,
        )
    if as_json:
        documents = [_document(stored) for stored in items]
        print_document(
            {"evidence": documents, "next_after": following, "damaged": _damage(damaged)}
        )
    else:
        _show_list(items)
    _end_if_damaged(damaged)


@command(app, "lpf evidence show C0001_E001")
def show(
    evidence_id: EvidenceId, workspace: WorkspaceFolder = None, as_json: AsJson = False
) -> None:
    """Show one item with all its fields, the salted hash by which records refer to it, and its
    earlier versions. Exit code 1 if one of those is damaged."""
    damaged: list[DamagedItem] = []
    with open_workspace(workspace) as space:
        stored = space.evidence.get(evidence_id)
        versions = space.evidence.versions(evidence_id, damaged)
    earlier = [one for one in versions if one.version < stored.version]
    damaged = _named_versions(damaged, stored, earlier)
    document = _version(stored)
    if as_json:
        earlier_versions = [_version(one) for one in earlier]
        print_document(
            {**document, "earlier_versions": earlier_versions, "damaged": _damage(damaged)}
        )
    else:
        _show_versions(document, earlier)
    _end_if_damaged(damaged)


def _named_versions(
    damaged: Sequence[DamagedItem], stored: StoredEvidence, sound: Sequence[StoredEvidence]
) -> list[DamagedItem]:
    """Damaged versions of an item, with their numbers: those that no sound version has."""
    numbers = sorted({*range(1, stored.version)} - {one.version for one in sound})
    if len(numbers) != len(damaged):  # rows are missing, so which is which is unknown
        return list(damaged)
    return [
        replace(item, reason=f"version {number}: {item.reason}")
        for number, item in zip(numbers, damaged, strict=True)
    ]


def _show_versions(document: dict[str, Any], earlier: Sequence[StoredEvidence]) -> None:
    from lpf.cli.terminal import console

    output = console()
    _show_fields(document)
    for one in reversed(earlier):
        output.print()
        output.print(f"Version {one.version}", style="bold")
        _show_fields(_version(one))


@command(
    app,
    'lpf evidence edit E001 --text "The audit found nothing."',
    "lpf evidence edit E001 --credibility 0.4 --label low",
)
def edit(
    evidence_id: EvidenceId,
    text: Annotated[str | None, typer.Option(help="New text.")] = None,
    credibility: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="New credibility in [0, 1].")
    ] = None,
    at: Annotated[str | None, typer.Option(help="New date; UTC unless it has a time zone.")] = None,
    source: Annotated[str | None, typer.Option(help="New source.")] = None,
    claim: Annotated[str | None, typer.Option(help="New claim.")] = None,
    report: Annotated[
        str | None, typer.Option(metavar="ID", help="New report, whose items are copies.")
    ] = None,
    label: Annotated[str | None, typer.Option(help="New label: a value of the predicate.")] = None,
    workspace: WorkspaceFolder = None,
    as_json: AsJson = False,
) -> None:
    """Change an item: it gets a new version, which later questions use. An empty text removes a
    value. The old version stays for the records that used it."""
    given = {
        "text_content": text,
        "credibility": credibility,
        "timestamp": at,
        "source": source,
        "claim": claim,
        "report_id": report,
        "supports_value": label,
    }
    changes = {name: value for name, value in given.items() if value is not None}
    if not changes:
        raise ConfigError(
            "nothing to change was given. Nothing was changed.",
            hint="Give --text, --credibility, --at, --source, --claim, --report or --label.",
        )
    with open_workspace(workspace) as space:
        stored = space.edit(evidence_id, **changes)
    if as_json:
        print_document(_version(stored))
    else:
        _show_fields(_version(stored))


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
    typer.echo(
        "To check it: lpf ledger prove RECORD --out BUNDLE, then "
        f"python -m lpf.ledger.check_bundle BUNDLE --disclosure {quoted(out)}"
    )


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


def _version(stored: StoredEvidence) -> dict[str, Any]:
    from lpf.storage.values import iso

    document = {**_document(stored), "version": stored.version}
    if stored.superseded_at is not None:
        document["superseded_at"] = iso(stored.superseded_at)
    return {**document, "commitment": stored.commitment.hex()}


def _show_fields(document: dict[str, Any]) -> None:
    from lpf.cli.terminal import console, print_pairs

    given = {name: value for name, value in document.items() if value is not None}
    print_pairs(console(), [(name, str(value)) for name, value in given.items()])


def _show_list(items: Sequence[StoredEvidence], similarities: Sequence[float] = ()) -> None:
    from lpf.cli.terminal import console, number, table

    if not items:
        typer.echo("No items found.")
        return
    names = ["item", "entity", "predicate", "label", "credibility", "date", "text"]
    rows = [_row(stored) for stored in items]
    if similarities:
        names = ["cosine", *names]
        rows = [[number(cosine), *row] for cosine, row in zip(similarities, rows, strict=True)]
    right, optional = ("cosine", "credibility"), ("predicate", "label", "date")
    console().print(table(names, rows, right=right, flexible="text", optional=optional))


def _row(stored: StoredEvidence) -> list[str]:
    from lpf.cli.terminal import number, start_of, when

    item = stored.evidence
    return [
        item.evidence_id,
        item.entity_id,
        item.predicate,
        item.supports_value or "",
        number(item.credibility),
        when(item.timestamp)[:10],
        start_of(item.text_content),
    ]
