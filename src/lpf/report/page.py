"""Parts of an HTML page that needs no other file, and numbers as pages print them.

Functions return HTML and escape the plain text that they are given; arguments that are HTML already
are called ``parts`` or ``contents``.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.resources import files
from typing import Literal

from lpf.report.drawing import Drawing, css_variables
from lpf.report.foreign_text import shown

Kind = Literal["name", "word", "number", "long"]


@dataclass(frozen=True)
class PageColumn:
    """A ``number`` is aligned to the right, a ``word`` is not wrapped, a ``name`` comes from the
    user and can be of any length, a ``long`` text gets most of the width."""

    title: str
    kind: Kind = "number"


@dataclass(frozen=True)
class PageRow:
    """One row of a table; a selected one is highlighted."""

    cells: Sequence[str]
    is_selected: bool = False


def text(plain: str) -> str:
    """Plain text escaped for HTML, with control characters made visible."""
    return shown(plain)


def make_page(
    title: str, parts: Iterable[str], contents: str = "", *, sheet: str | None = None
) -> str:
    """A complete document. ``contents`` is shown next to the parts on wide screens, and below the
    title on narrow ones.

    ``sheet`` is the name of a style sheet in this package that the page uses besides ``page.css``.
    Such a page shows texts of others, so its policy lets browsers run no script, load nothing and
    use no style but these sheets.
    """
    body = "\n".join(parts)
    style = f"\n{css_variables()}{_style('page.css')}"
    policy = ""
    if sheet is not None:
        style += _style(sheet)
        policy = _policy(style)
    heading = f"<h1>{text(title)}</h1>\n"
    opening = f"<body>\n<main>\n{heading}"
    if contents:
        opening = f'<body class="with-contents">\n{heading}{contents}\n<main>\n'
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n{policy}'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n"
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
    """A heading and what follows; ``id`` is for links from the contents."""
    opening = f'<section id="{id}">' if id else "<section>"
    return "\n".join([f"{opening}\n<h2>{text(title)}</h2>", *parts, "</section>"])


def definitions(facts: Iterable[tuple[str, str]]) -> str:
    """Names with their values, one below the other."""
    lines = (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n" for name, value in facts)
    return f'<dl class="facts">\n{"".join(lines)}</dl>'


def paragraph(plain: str) -> str:
    """One paragraph of plain text."""
    return f"<p>{text(plain)}</p>"


def bullets(lines: Sequence[str]) -> str:
    """A bulleted list of plain texts."""
    return "<ul>\n" + "".join(f"<li>{text(line)}</li>\n" for line in lines) + "</ul>"


def warnings_box(warnings: Sequence[str]) -> str:
    """A highlighted box, or a sentence that there are no warnings."""
    if not warnings:
        return paragraph("There are no warnings.")
    return (
        '<aside class="warnings" aria-label="Warnings">\n<h2>Read this first</h2>\n'
        f"{bullets(warnings)}\n</aside>"
    )


def glance(facts: Sequence[tuple[str, str]]) -> str:
    """The most important numbers as large tiles: name and value of each."""
    tiles = (f"<div><dt>{text(name)}</dt><dd>{text(value)}</dd></div>\n" for name, value in facts)
    return f'<dl class="glance">\n{"".join(tiles)}</dl>'


def figures(drawings: Iterable[Drawing]) -> str:
    """Figures with their captions, side by side if there is room."""
    return f'<div class="figures">\n{"".join(map(_figure, drawings))}</div>'


def table(caption: str, columns: Sequence[PageColumn], rows: Iterable[PageRow]) -> str:
    """A table that scrolls sideways on narrow screens. The first cell of a row is its heading."""
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
    """On a phone, long texts go below their row."""
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


def _style(name: str) -> str:
    return files("lpf.report").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str) -> str:
    """Allows this content of the element ``style``, by its hash, and nothing else."""
    digest = b64encode(sha256(style.encode()).digest()).decode()
    rules = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    return f'<meta http-equiv="Content-Security-Policy" content="{rules}">\n'


def percent(share: float) -> str:
    """A share in [0, 1] as a percentage with one decimal."""
    return f"{100 * share:.1f} %"


def points(difference: float) -> str:
    """A difference of two shares in percentage points, with its sign."""
    return f"{100 * difference:+z.1f}".replace("-", "−")


def decimals(number: float) -> str:
    """Three decimals. A small positive number is not shown as 0.000."""
    return "< 0.001" if 0 < number < 0.0005 else f"{number:z.3f}".replace("-", "−")


def percent_spread(mean: float, sd: float, seeds: int) -> str:
    """Mean ± standard deviation; the mean alone for a single seed."""
    return percent(mean) if seeds < 2 else f"{100 * mean:.1f} ± {100 * sd:.1f} %"


def decimals_spread(mean: float, sd: float, seeds: int) -> str:
    """Like ``percent_spread``, for numbers that are not shares."""
    return decimals(mean) if seeds < 2 else f"{decimals(mean)} ± {decimals(sd)}"


def counted(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"


def cut(name: str, characters: int) -> str:
    """A name of at most this many characters, with an ellipsis in the middle if it is longer:
    similar names often differ at their ends."""
    if len(name) <= characters:
        return name
    head = (characters - 1) * 2 // 3
    return f"{name[:head].rstrip()}…{name[len(name) - (characters - 1 - head) :].lstrip()}"
