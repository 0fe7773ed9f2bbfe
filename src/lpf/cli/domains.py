"""``lpf domains``: synthetic domains, and data sets made from them.

How a synthetic domain looks on a terminal.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.text import Text

from lpf.cli.common import AsJson, command, group, print_document
from lpf.cli.terminal import (
    FittedTable,
    console,
    indented,
    percent,
    print_pairs,
    print_table,
    table,
)
from lpf.domains import Domain
from lpf.domains.declaration import Field
from lpf.errors import ConfigError

if TYPE_CHECKING:
    from lpf.datasets import Dataset
    from lpf.domains import GeneratorParameters


def show_domain(domain: Domain) -> None:
    """The question and its values, the related one, the fields, and a sentence of every kind."""
    output = console()
    output.print(Text(f"{domain.name} · {domain.predicate}", style="bold"))
    output.print(indented(Text(domain.task)))
    output.print()
    meanings = zip(domain.values, domain.shares, domain.value_meanings, strict=True)
    output.print(Text("Values, with the share of entities that have them", style="bold"))
    print_pairs(
        output, [(value, f"{percent(share)}  {meaning}") for value, share, meaning in meanings]
    )
    output.print()
    print_table(
        output, f"Related: {domain.related.predicate}, how often for which", _chances(domain)
    )
    output.print()
    output.print(Text("Fields; a weight above 0 speaks for the last value", style="bold"))
    print_pairs(output, map(_field, domain.fields))
    for aspect in domain.aspects:
        output.print()
        output.print(Text(f"About {aspect.name}: {', '.join(aspect.sources)}", style="bold"))
        sentences = zip(domain.symbols, aspect.cells, strict=True)
        print_pairs(
            output, [(" or ".join(shown), c.sentences[0].wording(0)) for shown, c in sentences]
        )


def _chances(domain: Domain) -> FittedTable:
    rows = (
        [value, *map(percent, row)]
        for value, row in zip(domain.values, domain.related.table, strict=True)
    )
    return table((domain.predicate, *domain.related.values), rows, right=domain.related.values)


def _field(field: Field) -> tuple[str, str]:
    weight = f", weight {field.weight:+.1f}" if field.weight else ""
    return field.name, field.described + weight


app = group("domains", "Synthetic domains: list, show, generate labelled data.")

DomainName = Annotated[
    str, typer.Argument(metavar="DOMAIN", help="A name as listed, or a TOML file of your own.")
]


@command(app, "lpf domains list", name="list")
def list_domains(as_json: AsJson = False) -> None:
    """List the domains: what is asked in each, and how many ways there are to say it."""
    from lpf.domains import domain_names, load_domain

    found = [_summary(load_domain(name)) for name in domain_names()]
    if as_json:
        print_document({"domains": found})
        return
    from lpf.cli.terminal import console, table

    headings = ("name", "question", "values", "aspects", "sentences", "wordings")
    rows = ([_cell(one[heading]) for heading in headings] for one in found)
    numbers = ("aspects", "sentences", "wordings")
    console().print(table(headings, rows, right=numbers, flexible="values"))


@command(app, "lpf domains show compliance")
def show(domain: DomainName, as_json: AsJson = False) -> None:
    """Show a domain: its question, its fields, and a sentence of every kind."""
    from lpf.domains import load_domain

    loaded = load_domain(domain)
    if as_json:
        print_document(_described(loaded))
    else:
        show_domain(loaded)


@command(
    app,
    "lpf domains generate compliance compliance.jsonl",
    "lpf domains generate finance hard.jsonl --preset hard --set copies=0.3",
)
def generate(
    domain: DomainName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The data set to write, JSONL.")],
    preset: Annotated[str, typer.Option(help="Where to start from: paper or hard.")] = "paper",
    seed: Annotated[int, typer.Option(help="Another seed, another data set.")] = 42,
    entities: Annotated[
        int | None, typer.Option(help="How many; the preset's by default.", show_default=False)
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="Evidence for each, at most.", show_default=False)
    ] = None,
    extra_test: Annotated[int, typer.Option(help="So many test entities more.")] = 0,
    prefix: Annotated[str, typer.Option(help="A text before every id.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter. Repeat it."),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the known related facts, JSONL, as well."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace files that are there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Generate a labelled data set, with splits and the exact answers a perfect reader gives."""
    from lpf import domains
    from lpf.datasets import write_dataset

    _refuse_existing([file] if facts is None else [file, facts], force)
    loaded = domains.load_domain(domain)
    parameters = _parameters(preset, entities, items, settings or [])
    made = domains.generate(loaded, parameters, seed=seed, extra_test=extra_test, prefix=prefix)
    write_dataset(file, made)
    known = None if facts is None else domains.write_facts(facts, loaded, made)
    document = _outcome(file, made, loaded, parameters, seed) | {"facts": known}
    if as_json:
        print_document(document)
    else:
        _tell(document, facts)


def _parameters(
    preset: str, entities: int | None, items: int | None, settings: list[str]
) -> GeneratorParameters:
    from lpf import domains

    given = {"entities": entities, "items": items}
    short = [f"{name}={number}" for name, number in given.items() if number is not None]
    return domains.with_settings(domains.preset(preset), [*short, *settings])


def _refuse_existing(files: list[Path], force: bool) -> None:
    for file in files:
        if file.exists() and not force:
            raise ConfigError(
                f"{file}: is there already. Nothing was generated; say --force to replace it."
            )


def _outcome(
    file: Path, made: Dataset, domain: Domain, parameters: GeneratorParameters, seed: int
) -> dict[str, Any]:
    from lpf.datasets import SPLITS

    values = Counter(entity.labels[domain.predicate] for entity in made)
    return {
        "file": str(file),
        "domain": domain.name,
        "seed": seed,
        "entities": len(made),
        "items": sum(len(entity.evidence) for entity in made),
        "splits": {split: len(made.positions(split)) for split in SPLITS},
        "values": {value: values[value] for value in domain.values},
        "digest": made.digest,
        "parameters": asdict(parameters),
    }


def _tell(document: dict[str, Any], facts: Path | None) -> None:
    from lpf.cli.terminal import console, count, print_pairs

    entities, items = count(document["entities"], "entity", "entities"), document["items"]
    typer.echo(f"{document['file']}: {entities} with {count(items, 'item')}")
    shown = [("splits", _listed(document["splits"])), ("values", _listed(document["values"]))]
    if facts is not None:
        shown.append(("facts", f"{document['facts']:,} in {facts}"))
    print_pairs(console(), [*shown, ("digest", document["digest"])])


def _listed(counts: dict[str, int]) -> str:
    return " · ".join(f"{name} {number:,}" for name, number in counts.items())


def _summary(domain: Domain) -> dict[str, Any]:
    return {
        "name": domain.name,
        "question": domain.predicate,
        "values": list(domain.values),
        "aspects": len(domain.aspects),
        "sentences": domain.sentence_count,
        "wordings": domain.wording_count,
    }


def _described(domain: Domain) -> dict[str, Any]:
    return _summary(domain) | {
        "task": domain.task,
        "shares": list(domain.shares),
        "value_meanings": list(domain.value_meanings),
        "related": asdict(domain.related),
        "fields": [
            {
                "name": field.name,
                "kind": field.kind,
                "content": field.described,
                "weight": field.weight,
            }
            for field in domain.fields
        ],
        "aspects": [
            {
                "name": aspect.name,
                "sources": list(aspect.sources),
                "examples": {
                    " or ".join(shown): cell.sentences[0].wording(0)
                    for shown, cell in zip(domain.symbols, aspect.cells, strict=True)
                },
            }
            for aspect in domain.aspects
        ],
    }


def _cell(content: object) -> str:
    if isinstance(content, list):
        return ", ".join(content)
    return f"{content:,}" if isinstance(content, int) else str(content)
