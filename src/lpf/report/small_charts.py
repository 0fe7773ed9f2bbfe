"""Small charts as HTML and SVG strings: bars of values, a histogram."""

from __future__ import annotations

from collections.abc import Sequence

from lpf.report.foreign_text import beginning, isolated, shown
from lpf.report.waterfall import share

NAME_CHARACTERS = 80
IN_SET = '<span aria-hidden="true">✓</span><span class="unseen">in the prediction set</span>'


def value_bars(
    values: Sequence[str], probabilities: Sequence[float], kept: Sequence[str] | None = None
) -> str:
    """A table of the values in their order with a bar each; the most probable one is in bold.
    ``kept`` are the values of a prediction set."""
    best = max(range(len(values)), key=probabilities.__getitem__)
    rows = []
    for place, (value, probability) in enumerate(zip(values, probabilities, strict=True)):
        chosen = ' class="chosen"' if place == best else ""
        mark = "" if kept is None else f"<td>{IN_SET if value in kept else ''}</td>"
        rows.append(
            f'<tr{chosen}><th scope="row">{isolated(beginning(value, NAME_CHARACTERS))}</th>'
            f'<td class="bar">{bar(probability, "for" if place == best else "quiet")}</td>'
            f'<td class="number">{share(probability)}</td>{mark}</tr>\n'
        )
    last = "" if kept is None else '<th scope="col">prediction set</th>'
    head = (
        '<thead class="unseen"><tr><th scope="col">value</th><th scope="col">bar</th>'
        f'<th scope="col">probability</th>{last}</tr></thead>'
    )
    return f'<table class="bars">{head}<tbody>\n{"".join(rows)}</tbody></table>'


def bar(part: float, shade: str) -> str:
    """A bar over this share of its cell."""
    return (
        f'<svg class="plain" width="100%" height="14" aria-hidden="true"><rect class="room" '
        f'width="100%" height="14"/><rect class="{shade}" width="{100 * part:.2f}%" height="14"/>'
        "</svg>"
    )


def histogram(names: Sequence[str], counts: Sequence[int], links: Sequence[str]) -> str:
    """A table with a bar per bin. ``links`` are ids on the page, empty for none."""
    most = max(counts, default=0) or 1
    rows = []
    for name, count, link in zip(names, counts, links, strict=True):
        head = f'<a href="#{shown(link)}">{shown(name)}</a>' if link else shown(name)
        rows.append(
            f'<tr><th scope="row">{head}</th><td class="bar">{bar(count / most, "for")}</td>'
            f'<td class="number">{count:,}</td></tr>\n'
        )
    head = (
        '<thead><tr><th scope="col">confidence</th><th scope="col"><span class="unseen">bar</span>'
        '</th><th scope="col" class="number">answers</th></tr></thead>'
    )
    return f'<table class="bars">{head}<tbody>\n{"".join(rows)}</tbody></table>'
