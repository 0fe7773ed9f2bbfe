"""How a synthetic domain looks on a terminal."""

from __future__ import annotations

from rich.text import Text

from lpf.cli.rendering import console, indented, percent, print_pairs, print_table
from lpf.cli.tables import FittedTable, table
from lpf.domains import Domain
from lpf.domains.fields import Field


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
