"""HTML that stands alone. Whatever comes from outside goes through ``text`` here.

Numbers as a reader meets them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from typing import Literal

from lpf.report.drawing import Drawing, css_variables

Kind = Literal["name", "word", "number", "long"]


@dataclass(frozen=True)
class PageColumn:
    """A ``number`` stands to the right, a ``word`` is ours and stays in one line, a ``name`` is the
    user's, a ``long`` text needs room."""

    title: str
    kind: Kind = "number"


@dataclass(frozen=True)
class PageRow:
    cells: Sequence[str]
    is_selected: bool = False


def text(plain: str) -> str:
    return escape(plain, quote=True)


def page(title: str, parts: Iterable[str], contents: str = "") -> str:
    """A whole document; ``parts`` and ``contents`` are HTML already. Contents stand beside the rest
    where there is room, and else below the title."""
    body = "\n".join(parts)
    heading = f"<h1>{text(title)}</h1>\n"
    opening = f"<body>\n<main>\n{heading}"
    if contents:
        opening = f'<body class="with-contents">\n{heading}{contents}\n<main>\n'
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>\n{css_variables()}{_style()}</style>\n</head>\n"
        f"{opening}{body}\n</main>\n</body>\n</html>\n"
    )


def contents(entries: Sequence[tuple[str, str]]) -> str:
    """Links to sections: id and title of each."""
    lines = "".join(f'<li><a href="#{name}">{text(title)}</a></li>\n' for name, title in entries)
    return (
        '<nav class="contents" aria-label="Contents">\n<h2>Contents</h2>\n'
        f"<ol>\n{lines}</ol>\n</nav>"
    )


def section(title: str, *parts: str, id: str = "") -> str:
    opening = f'<section id="{id}">' if id else "<section>"
    return "\n".join([f"{opening}\n<h2>{text(title)}</h2>", *parts, "</section>"])


def definitions(facts: Iterable[tuple[str, str]]) -> str:
    """Names and what they stand for, one below the other."""
    lines = (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n" for name, value in facts)
    return f'<dl class="facts">\n{"".join(lines)}</dl>'


def paragraph(plain: str) -> str:
    return f"<p>{text(plain)}</p>"


def bullets(lines: Sequence[str]) -> str:
    return "<ul>\n" + "".join(f"<li>{text(line)}</li>\n" for line in lines) + "</ul>"


def warnings_box(cautions: Sequence[str]) -> str:
    """A box that cannot be missed, or a sentence that there is nothing to say."""
    if not cautions:
        return paragraph("No cautions: nothing was found that the numbers would not say.")
    return (
        '<aside class="cautions" aria-label="Cautions">\n<h2>Read this first</h2>\n'
        f"{bullets(cautions)}\n</aside>"
    )


def glance(facts: Sequence[tuple[str, str]]) -> str:
    """The few numbers that a reader looks for."""
    tiles = (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n" for name, value in facts)
    return f'<dl class="glance">\n{"".join(tiles)}</dl>'


def figures(drawings: Iterable[Drawing]) -> str:
    return f'<div class="figures">\n{"".join(map(_figure, drawings))}</div>'


def table(caption: str, columns: Sequence[PageColumn], rows: Iterable[PageRow]) -> str:
    """The first cell of a row names it."""
    heads = "".join(
        f'<th scope="col" class="{column.kind}">{text(column.title)}</th>' for column in columns
    )
    body = "".join(_row(columns, row) for row in rows)
    opening = '<table class="stacked">' if _is_long(columns) else "<table>"
    return (
        f'<div class="scroll" role="region" aria-label="{text(caption)}" tabindex="0">\n'
        f"{opening}\n<caption>{text(caption)}</caption>\n<thead><tr>{heads}</tr></thead>\n"
        f"<tbody>\n{body}</tbody>\n</table>\n</div>"
    )


def _is_long(columns: Sequence[PageColumn]) -> bool:
    """On a phone the long text goes below its row, as it would be out of sight beside it."""
    return any(column.kind == "long" for column in columns)


def _row(columns: Sequence[PageColumn], row: PageRow) -> str:
    first, *rest = zip(columns, row.cells, strict=True)
    cells = "".join(f'<td class="{column.kind}">{text(cell)}</td>' for column, cell in rest)
    head = f'<th scope="row" class="{first[0].kind}">{text(first[1])}</th>'
    opening = '<tr class="selected">' if row.is_selected else "<tr>"
    return f"{opening}{head}{cells}</tr>\n"


def _figure(drawing: Drawing) -> str:
    spoken = text(f"{drawing.title}. {drawing.caption}")
    drawn = drawing.inline
    opening = "<figure"
    if drawing.is_wide:
        opening = '<figure class="wide"'
        drawn = f'<div class="scroll" tabindex="0">{drawn}</div>'
    return (
        f'{opening} role="img" aria-label="{spoken}">\n{drawn}\n'
        f"<figcaption>{text(drawing.caption)}</figcaption>\n</figure>\n"
    )


def _style() -> str:
    return files("lpf.report").joinpath("page.css").read_text(encoding="utf-8")


def percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of two shares, with its sign."""
    return f"{100 * difference:+z.1f}".replace("-", "−")


def decimals(number: float) -> str:
    """Three of them. What is little more than nothing is not shown as nothing."""
    return "< 0.001" if 0 < number < 0.0005 else f"{number:z.3f}".replace("-", "−")


def percent_spread(mean: float, sd: float, seeds: int) -> str:
    """One seed has no spread, which is not a spread of nothing."""
    return percent(mean) if seeds < 2 else f"{100 * mean:.1f} ± {100 * sd:.1f} %"


def decimals_spread(mean: float, sd: float, seeds: int) -> str:
    return decimals(mean) if seeds < 2 else f"{decimals(mean)} ± {decimals(sd)}"


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def cut(name: str, characters: int) -> str:
    """What is cut off ends in dots. Cut in the middle: names of a kind differ at both ends."""
    if len(name) <= characters:
        return name
    head = (characters - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (characters - 1 - head) :].lstrip()}"
