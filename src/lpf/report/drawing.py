"""One figure: drawn once, kept as PNG and SVG files and as part of a page.

Every figure has one panel and the width of a phone, so that its words can be read there; a page
puts two side by side where there is room.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lpf.errors import ConfigError
from lpf.report.palette import LIGHT, with_variables
from lpf.storage.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH = 4.4  # inches
DOTS_PER_INCH = 200
LEGEND_COLUMNS = 2
# Draws on the axes and returns what the legend shows; an empty legend is left out.
Painter = Callable[["Axes"], Sequence["Artist"]]

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


def draw(name: str, title: str, caption: str, height: float, paint: Painter) -> Drawing:
    """``height`` in inches, without the legend. ConfigError where matplotlib is not installed."""
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
        lines = -(-len(shown) // LEGEND_COLUMNS)
        figure.set_size_inches(WIDTH, height + 0.18 * lines)
        figure.suptitle(title, x=0.02, ha="left", fontsize=10, fontweight="bold")
        if shown:
            figure.legend(handles=shown, loc="outside lower left", ncols=LEGEND_COLUMNS)
        return Drawing(name, title, caption, _svg(figure), _png(figure))


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
