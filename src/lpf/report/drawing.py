"""One figure: drawn once, kept as PNG and SVG files and as part of a page.

Every figure has one panel and the width of a phone, so that its words can be read there; a page
puts two side by side where there is room. What does not fit there is wide, and scrolls on a phone.

Colours, by what they stand for. Told apart by colour-blind readers, and by lightness in grey.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from lpf.errors import ConfigError
from lpf.storage.atomic_files import write_atomically

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# Figures are drawn in the light colours. In a page each becomes a CSS variable, so no two of them
# may be the same.
LIGHT = {
    "surface": "#ffffff",
    "panel": "#f6f8fa",
    "ink": "#1f2328",
    "quiet": "#57606a",
    "grid": "#dfe3e7",
    "first": "#0072b2",  # validation, the selected seed, ours
    "second": "#e69f00",  # training, the weighted KL
    "third": "#009e73",
    "fourth": "#cc79a7",
    "fifth": "#d55e00",
    "rival": "#858d96",  # what we are compared with
    "member": "#7ab3d6",
    "other": "#c3c8cd",
    "ours-panel": "#e6f1f8",
    "caution": "#b34700",
    "caution-panel": "#fff3e6",
}
DARK = {
    "surface": "#14171a",
    "panel": "#1d2125",
    "ink": "#e6e9ec",
    "quiet": "#a3abb3",
    "grid": "#343a40",
    "first": "#56b4e9",
    "second": "#e69f00",
    "third": "#2fbf94",
    "fourth": "#e0a3c6",
    "fifth": "#f0793a",
    "rival": "#8b939b",
    "member": "#2c7099",
    "other": "#565e66",
    "ours-panel": "#16303f",
    "caution": "#ff9d4d",
    "caution-panel": "#33230f",
}


def css_variables() -> str:
    """Both sets of colours, chosen by what the reader's system prefers; paper is always light."""
    light, dark = _declared(LIGHT), _declared(DARK)
    return (
        f":root {{ {light} color-scheme: light dark; }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def with_variables(svg: str) -> str:
    """A drawing in light colours as one that follows the page it stands in."""
    for name, colour in LIGHT.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def _declared(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


WIDTH, WIDE = 4.4, 9.0  # inches
DOTS_PER_INCH = 200
LEGEND_COLUMNS = 2
LEGEND_CHARACTERS, MOST_LINES = 23, 4  # of a column; of a name in it
TITLE_CHARACTERS = 11.5  # an inch
# Draws on the axes and returns what the legend shows; an empty legend is left out.
Painter = Callable[["Axes"], Sequence["Artist"]]
# Moves words once it is known where everything stands.
Settler = Callable[["Axes"], None]

STYLE: Mapping[str, Any] = {
    "svg.hashsalt": "lpf",  # else the ids in an SVG differ from run to run
    "svg.fonttype": "path",
    "text.parse_math": False,  # a name with dollar signs is a name
    "font.family": "DejaVu Sans",  # comes with matplotlib: the same on every machine
    "font.size": 9.0,
    "axes.labelsize": 9.0,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "legend.columnspacing": 1.4,
    "lines.linewidth": 1.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "figure.facecolor": LIGHT["surface"],
    "axes.facecolor": "none",
    "axes.edgecolor": LIGHT["quiet"],
    "axes.labelcolor": LIGHT["ink"],
    "text.color": LIGHT["ink"],
    "xtick.color": LIGHT["quiet"],
    "ytick.color": LIGHT["quiet"],
    "xtick.labelcolor": LIGHT["ink"],
    "ytick.labelcolor": LIGHT["ink"],
    "grid.color": LIGHT["grid"],
    "grid.linewidth": 0.8,
}


@dataclass(frozen=True)
class Drawing:
    """``name`` is that of its files; ``caption`` says what is to be seen and how to read it."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    is_wide: bool = False

    @property
    def inline(self) -> str:
        """The SVG for a page: no addresses, ids of its own, the page's colours, any width."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        head, rest = body.split(">", 1)
        box = re.search(r'viewBox="[^"]*"', head)
        assert box is not None  # matplotlib always writes one
        rest = rest.replace("xlink:href", "href")
        rest = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{self.name}-", rest)
        return f'<svg {box.group()} aria-hidden="true">{with_variables(rest)}'

    def write(self, folder: Path) -> None:
        write_atomically(folder / f"{self.name}.svg", self.svg.encode())
        write_atomically(folder / f"{self.name}.png", self.png)


def draw(
    name: str,
    title: str,
    caption: str,
    height: float,
    paint: Painter,
    settle: Settler | None = None,
    *,
    is_wide: bool = False,
) -> Drawing:
    """``height`` in inches, without title and legend. ConfigError where matplotlib is not
    installed."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ConfigError(
            "report: drawing figures needs matplotlib. Nothing was written; "
            "pip install 'lpf[report]'."
        ) from error
    # Whatever the user's own settings are, the figure is the same.
    with style.context(["default", dict(STYLE)]):
        figure = Figure(layout="constrained")
        shown = paint(figure.add_subplot())
        _fit(figure, title, height, shown, WIDE if is_wide else WIDTH)
        if settle is not None:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # what has its place keeps it from here on
            settle(figure.axes[0])
        return Drawing(name, title, caption, _svg(figure), _png(figure), is_wide)


def legend_name(name: str) -> str:
    """Whole, on as many lines as it needs: two that are cut may look the same."""
    return "\n".join(wrap(name, LEGEND_CHARACTERS, max_lines=MOST_LINES, placeholder="…"))


def _fit(figure: Figure, title: str, height: float, shown: Sequence[Artist], width: float) -> None:
    """Title above, legend below, and room for both."""
    columns = LEGEND_COLUMNS if width == WIDTH else 2 * LEGEND_COLUMNS
    lines = wrap(title, int(width * TITLE_CHARACTERS)) or [""]
    figure.set_size_inches(
        width, height + 0.15 * (len(lines) - 1) + 0.18 * _legend_lines(shown, columns)
    )
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=10, fontweight="bold")
    if shown:
        figure.legend(handles=shown, loc="outside lower left", ncols=columns)


def _legend_lines(shown: Sequence[Artist], columns: int) -> int:
    """Of its highest column. matplotlib fills one after the other, the first ones with one more
    where they do not come out even."""
    lines = [str(one.get_label()).count("\n") + 1 for one in shown]
    return max(int(column.sum()) for column in np.array_split(lines, columns))


def _svg(figure: Figure) -> str:
    # Neither date nor version: the same numbers give the same bytes.
    nameless = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    written = BytesIO()
    figure.savefig(written, format="svg", metadata=nameless)
    return written.getvalue().decode()


def _png(figure: Figure) -> bytes:
    written = BytesIO()
    figure.savefig(written, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return written.getvalue()
