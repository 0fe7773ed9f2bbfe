"""``lpf init``: create a workspace."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lpf.cli.common import AsJson, command, print_document
from lpf.cli.safe_output import one_line, quoted
from lpf.errors import ConfigError, SchemaError

if TYPE_CHECKING:
    from lpf.schema import Schema
    from lpf.workspace import Workspace


PredicateTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--predicate",
        metavar="NAME=VALUE,VALUE...",
        help="Predicate and its values in order, optionally with prior probabilities: "
        "'level=low:0.3,medium:0.4,high:0.3'. Repeat for more.",
    ),
]
Description = Annotated[
    str | None,
    typer.Option(
        "--description",
        metavar="TEXT",
        help="What the predicate asks. A question or a statement ('Is the supplier reliable?') is "
        "the claim of evidence that comes without one.",
        show_default=False,
    ),
]
RelatedTexts = Annotated[
    list[str] | None,
    typer.Option("--related", metavar="NAME,NAME...", help="Predicates that depend on each other."),
]
SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema", metavar="FILE", help="Read predicates and relations from a TOML file."
    ),
]
DomainName = Annotated[
    str | None,
    typer.Option(
        "--domain",
        metavar="NAME",
        help="Take predicates and relations from a synthetic domain (lpf domains list).",
    ),
]


def register(app: typer.Typer) -> None:
    command(
        app,
        'lpf init reviews --predicate "compliance_level=low,medium,high"',
        "lpf init reviews --schema schema.toml",
        "lpf init try --domain compliance",
        "lpf init facts --claims",
        name="init",
    )(initialise)


def initialise(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the workspace.")
    ] = Path(),
    predicate: PredicateTexts = None,
    description: Description = None,
    related: RelatedTexts = None,
    schema: SchemaFile = None,
    domain: DomainName = None,
    claims: Annotated[
        bool,
        typer.Option(
            "--claims",
            help="Verdicts on claims: supported, refuted or not enough information. Answers at "
            "once, without labels.",
        ),
    ] = False,
    reader: Annotated[str, typer.Option(help="Reader: turns texts into features.")] = "minilm",
    store: Annotated[
        str | None,
        typer.Option(
            metavar="URL", help="Database: sqlite:///FILE or postgresql://... By default store.db."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Create a workspace: settings, an empty store and the key that signs its ledger."""
    from lpf.workspace import Workspace

    if claims:
        _refuse_with_claims(predicate, description, related, schema, domain)
        created = Workspace.create_for_claims(folder, reader=reader, store_url=store)
    else:
        wanted = _schema(predicate or [], related or [], schema, domain)
        if description is not None:
            wanted = _described(wanted, description, bool(predicate))
        created = Workspace.create(folder, wanted, reader=reader, store_url=store)
    with created as workspace:
        document = _document(workspace) | {"domain": domain, "claims": claims}
    if as_json:
        print_document(document)
    else:
        _show(document)


def _refuse_with_claims(*others: object) -> None:
    if any(others):
        raise ConfigError(
            "defines the whole schema.",
            field="--claims",
            hint="Leave --predicate, --description, --related, --schema and --domain out.",
        )


def _schema(
    predicates: Sequence[str], related: Sequence[str], file: Path | None, domain: str | None
) -> Schema:
    from lpf.schema import Relation, Schema

    if domain is not None:
        if file is not None or predicates or related:
            raise ConfigError(
                "defines the whole schema.",
                field="--domain",
                hint="Leave --schema, --predicate and --related out.",
            )
        from lpf.domains import load_domain

        return load_domain(domain).schema()
    if file is not None and (predicates or related):
        raise ConfigError(
            "defines the whole schema.",
            field="--schema",
            hint="Leave --predicate and --related out.",
        )
    if file is not None:
        return Schema.from_toml(file)
    if not predicates:
        raise ConfigError(
            "is missing: a workspace needs at least one predicate.",
            field="--predicate",
            hint="Give one, such as --predicate 'compliance_level=low,medium,high', a file with "
            "--schema, a domain with --domain, or verdicts on claims with --claims.",
        )
    relations = tuple(Relation(tuple(_listed(names))) for names in related)
    return Schema(tuple(map(_predicate, predicates)), relations)


def _described(schema: Schema, description: str, is_given_here: bool) -> Schema:
    if not is_given_here or len(schema.predicates) > 1:
        raise ConfigError(
            "is for a single --predicate.",
            field="--description",
            hint="Describe several predicates in a file, each with its description, and name it "
            "with --schema.",
        )
    return replace(schema, predicates=(replace(schema.predicates[0], description=description),))


def _predicate(text: str) -> Any:
    from lpf.schema import Predicate

    name, equals, listed = text.partition("=")
    if not equals:
        raise SchemaError(f"must look like NAME=VALUE,VALUE..., got {text!r}.", field="--predicate")
    parts = [part.partition(":") for part in _listed(listed)]
    values = tuple(value.strip() for value, _, _ in parts)
    priors = [prior for _, colon, prior in parts if colon]
    if priors and len(priors) < len(values):
        raise SchemaError("give every value a prior, or none.", field=f"--predicate {name}")
    try:
        return Predicate(name.strip(), values, tuple(map(float, priors)))
    except SchemaError:
        raise
    except ValueError as error:
        raise SchemaError(
            f"a prior must be a number ({error}).", field=f"--predicate {name}"
        ) from None


def _listed(text: str) -> list[str]:
    return [part.strip() for part in text.split(",")]


def _document(workspace: Workspace) -> dict[str, Any]:
    from lpf.workspace.settings import FILE_NAME

    settings, identity = workspace.settings, workspace.records.identity
    return {
        "workspace": str(workspace.folder),
        "settings": str(workspace.folder / FILE_NAME),
        "store": workspace.database.name,
        "reader": settings.reader.name,
        "predicates": {predicate.name: list(predicate.values) for predicate in workspace.schema},
        "claim": workspace.default_claim(),
        "ledger": identity.origin,
        "key": str(settings.key_file) if settings.key_file.exists() else None,
        "public_key": identity.public_key.hex(),
    }


def _show(document: dict[str, Any]) -> None:
    from rich.text import Text

    from lpf.cli.terminal import console, print_pairs

    output = console()
    folder = one_line(document["workspace"])
    output.print(Text.assemble(("Created a workspace", "bold"), f" in {folder}"))
    predicates = [
        one_line(f"{name}: {', '.join(values)}") for name, values in document["predicates"].items()
    ]
    print_pairs(
        output,
        [
            ("settings", document["settings"]),
            ("store", document["store"]),
            ("predicates", "\n".join(predicates)),
            *([("claim", one_line(document["claim"]))] if document["claim"] else []),
            ("signing key", document["key"] or "none here: the ledger of this store has its own"),
            ("public key", document["public_key"]),
        ],
    )
    output.print("\nKeep the signing key secret; publish the public key.")
    output.print("[bold]Next[/bold]")
    train = f"lpf train {quoted(document['domain'])}" if document["domain"] else "lpf train"
    has_claims = " with a column claim" if document["claims"] else ""
    steps = {
        "lpf ingest FILE": f"add evidence: CSV, Excel, JSONL or Parquet{has_claims}",
        "lpf facts add FILE": "add what is known for certain",
        **({"lpf facts learn": "learn how predicates are related"} if len(predicates) > 1 else {}),
        **({} if document["claims"] else {train: "train a model on labelled evidence"}),
        f"lpf query ENTITY{' PREDICATE' if len(predicates) > 1 else ''}": "ask a question",
        **({train: "adapt it, once you have labels"} if document["claims"] else {}),
    }
    width = max(22, *map(len, steps)) + 2
    for step, purpose in steps.items():
        output.print(Text(f"  {step:<{width}}{purpose}"))
