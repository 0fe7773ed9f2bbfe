"""``lpf domains``: list and show synthetic domains, and generate data sets from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from lpf.cli.common import AsJson, command, group, print_document
from lpf.cli.exits import FileName
from lpf.cli.safe_output import one_line, visible
from lpf.errors import ConfigError
from lpf.options import LARGEST_SEED

if TYPE_CHECKING:
    from lpf.cli.terminal import FittedTable
    from lpf.datasets import Dataset
    from lpf.domains import Domain, GeneratorParameters
    from lpf.domains.declaration import Field

app = group("domains", "Synthetic domains: list, show, generate labelled data.")

DomainName = Annotated[
    str,
    typer.Argument(
        metavar="DOMAIN", help="Name as listed, or a TOML file of your own.", parser=FileName
    ),
]


@command(app, "lpf domains list", name="list")
def list_domains(as_json: AsJson = False) -> None:
    """List the domains with their predicate, values and number of sentences."""
    from lpf.domains import domain_names, load_domain

    summaries = [_summary(load_domain(name)) for name in domain_names()]
    if as_json:
        print_document({"domains": summaries})
        return
    from lpf.cli.terminal import console, table

    headings = ("name", "predicate", "values", "aspects", "sentences", "wordings")
    rows = ([_cell(value) for value in summary.values()] for summary in summaries)
    numbers = ("aspects", "sentences", "wordings")
    console().print(table(headings, rows, right=numbers, flexible="values"))


@command(app, "lpf domains show compliance")
def show(domain: DomainName, as_json: AsJson = False) -> None:
    """Show a domain: its predicate, its fields, and an example of every kind of sentence."""
    from lpf.domains import load_domain

    loaded = load_domain(domain)
    if as_json:
        print_document(_document(loaded))
    else:
        _show_domain(loaded)


@command(
    app,
    "lpf domains generate compliance compliance.jsonl",
    "lpf domains generate finance hard.jsonl --preset hard --set copies=0.3",
)
def generate(
    domain: DomainName,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Data set to write, JSONL.")],
    preset: Annotated[
        Literal["paper", "hard"], typer.Option(help="Parameters to start from.")
    ] = "paper",
    seed: Annotated[int, typer.Option(min=0, max=LARGEST_SEED, help="Random seed.")] = 42,
    entities: Annotated[
        int | None,
        typer.Option(help="Number of entities; by default the preset's.", show_default=False),
    ] = None,
    items: Annotated[
        int | None, typer.Option(help="Most items per entity.", show_default=False)
    ] = None,
    extra_test: Annotated[
        int, typer.Option(min=0, max=1_000_000, help="Number of additional test entities.")
    ] = 0,
    prefix: Annotated[str, typer.Option(help="Prefix of every ID.")] = "",
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Any other parameter; repeat for more."),
    ] = None,
    facts: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the known facts to this file, JSONL."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: AsJson = False,
) -> None:
    """Generate a labelled data set with splits and the exact answers."""
    from lpf import domains
    from lpf.datasets import write_dataset

    _refuse_existing([file] if facts is None else [file, facts], force)
    loaded = domains.load_domain(domain)
    parameters = _parameters(preset, entities, items, settings or [])
    dataset = domains.generate(loaded, parameters, seed=seed, extra_test=extra_test, prefix=prefix)
    write_dataset(file, dataset)
    known = None if facts is None else domains.write_facts(facts, loaded, dataset)
    document = _outcome(file, dataset, loaded, parameters, seed) | {"facts": known}
    if as_json:
        print_document(document)
    else:
        _show_outcome(document, facts)


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
                f"{file}: exists already. Nothing was generated.",
                hint="Use --force to overwrite it.",
            )


def _outcome(
    file: Path, dataset: Dataset, domain: Domain, parameters: GeneratorParameters, seed: int
) -> dict[str, Any]:
    from lpf.datasets import SPLITS

    values = Counter(entity.labels[domain.predicate] for entity in dataset)
    return {
        "file": str(file),
        "domain": domain.name,
        "seed": seed,
        "entities": len(dataset),
        "items": sum(len(entity.evidence) for entity in dataset),
        "splits": {split: len(dataset.positions(split)) for split in SPLITS},
        "values": {value: values[value] for value in domain.values},
        "digest": dataset.digest,
        "parameters": asdict(parameters),
    }


def _show_outcome(document: dict[str, Any], facts: Path | None) -> None:
    from lpf.cli.terminal import console, count, print_pairs

    entities, items = count(document["entities"], "entity", "entities"), document["items"]
    typer.echo(f"Wrote {entities} with {count(items, 'item')} to {one_line(document['file'])}.")
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


def _document(domain: Domain) -> dict[str, Any]:
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


def _show_domain(domain: Domain) -> None:
    """The predicate and its values, the related one, the fields, and an example of every kind of
    sentence."""
    from rich.text import Text

    from lpf.cli.terminal import console, indented, percent, print_pairs, print_table

    output = console()
    output.print(Text(one_line(f"{domain.name} · {domain.predicate}"), style="bold"))
    output.print(indented(Text(visible(domain.task))))
    output.print()
    meanings = zip(domain.values, domain.shares, domain.value_meanings, strict=True)
    output.print(Text("Values, with their shares", style="bold"))
    print_pairs(
        output, [(value, f"{percent(share)}  {meaning}") for value, share, meaning in meanings]
    )
    output.print()
    print_table(output, f"Related predicate: {domain.related.predicate}", _related_table(domain))
    output.print()
    output.print(Text("Fields; a weight above 0 supports the last value", style="bold"))
    print_pairs(output, map(_field_pair, domain.fields))
    for aspect in domain.aspects:
        about = one_line(f"About {aspect.name}: {', '.join(aspect.sources)}")
        output.print()
        output.print(Text(about, style="bold"))
        examples = zip(domain.symbols, aspect.cells, strict=True)
        print_pairs(
            output, [(" or ".join(shown), cell.sentences[0].wording(0)) for shown, cell in examples]
        )


def _related_table(domain: Domain) -> FittedTable:
    """The distribution of the related predicate, one row per value."""
    from lpf.cli.terminal import percent, table

    rows = (
        [value, *map(percent, row)]
        for value, row in zip(domain.values, domain.related.table, strict=True)
    )
    return table((domain.predicate, *domain.related.values), rows, right=domain.related.values)


def _field_pair(field: Field) -> tuple[str, str]:
    weight = f", weight {field.weight:+.1f}" if field.weight else ""
    return field.name, field.described + weight
