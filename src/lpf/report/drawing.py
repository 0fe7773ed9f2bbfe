"""One figure: drawn once, written as PNG and SVG and embedded in a page.

Every figure has one panel and is as wide as a phone's screen, so that its text can be read there; a
page puts two side by side if there is room. A wide figure scrolls on a phone. Colour-blind
readers can distinguish the colours; in grey they differ in lightness.
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


# Colours by meaning. Figures are drawn in the light ones; in a page each becomes a CSS variable, so
# all must be different.
LIGHT = {
    "surface": "#ffffff",
    "panel": "#f6f8fa",
    "ink": "#1f2328",
    "quiet": "#57606a",
    "grid": "#dfe3e7",
    "first": "#0072b2",  # validation, the selected seed, LPF
    "second": "#e69f00",  # training, the weighted KL
    "third": "#009e73",
    "fourth": "#cc79a7",
    "fifth": "#d55e00",
    "rival": "#858d96",  # methods that LPF is compared with
    "member": "#7ab3d6",
    "other": "#c3c8cd",
    "ours-panel": "#e6f1f8",
    "warning": "#b34700",
    "warning-panel": "#fff3e6",
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
    "warning": "#ff9d4d",
    "warning-panel": "#33230f",
}


def css_variables() -> str:
    """Both sets of colours; the reader's system chooses one, and print is always light."""
    light, dark = _declared(LIGHT), _declared(DARK)
    return (
        f":root {{ {light} color-scheme: light dark; }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ {dark} }} }}\n"
    )


def with_variables(svg: str) -> str:
    """An SVG in light colours as one that uses the colours of its page."""
    for name, colour in LIGHT.items():
        svg = svg.replace(colour, f"var(--{name})")
    return svg


def _declared(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


WIDTH, WIDE = 4.4, 9.0  # inches
DOTS_PER_INCH = 200
LEGEND_COLUMNS = 2
LEGEND_CHARACTERS, MOST_LINES = 23, 4  # of a column; of a name in it
TITLE_CHARACTERS = 11.5  # per inch
# Draws on the axes and returns what the legend shows; an empty legend is left out.
Painter = Callable[["Axes"], Sequence["Artist"]]
# Moves texts after the layout is known.
Settler = Callable[["Axes"], None]

STYLE: Mapping[str, Any] = {
    "svg.hashsalt": "lpf",  # otherwise the ids in an SVG differ from run to run
    "svg.fonttype": "path",
    "text.parse_math": False,  # names may contain dollar signs
    "font.family": "DejaVu Sans",  # part of matplotlib: the same on every machine
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
    """A finished figure. ``name`` is that of its files; ``caption`` says what it shows."""

    name: str
    title: str
    caption: str
    svg: str
    png: bytes
    is_wide: bool = False

    @property
    def inline(self) -> str:
        """The SVG for a page: no metadata, unique ids, the page's colours, any width."""
        body = self.svg[self.svg.index("<svg") :]
        body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
        head, rest = body.split(">", 1)
        box = re.search(r'viewBox="[^"]*"', head)
        assert box is not None  # matplotlib always writes one
        rest = rest.replace("xlink:href", "href")
        rest = re.sub(r'(id="|href="#|url\(#)', rf"\g<1>{self.name}-", rest)
        return f'<svg {box.group()} aria-hidden="true">{with_variables(rest)}'

    def write(self, folder: Path) -> None:
        """Write ``<name>.svg`` and ``<name>.png``."""
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
    """Draw one figure. ``height`` is in inches, without title and legend; ``paint`` draws on the
    axes and returns the entries of the legend. ConfigError if matplotlib is not installed."""
    try:
        from matplotlib import style
        from matplotlib.figure import Figure
    except ModuleNotFoundError as error:
        raise ConfigError(
            "report: drawing figures needs matplotlib. Nothing was written; "
            "pip install 'lpf[report]'."
        ) from error
    # The user's own matplotlib settings must not change the figure.
    with style.context(["default", dict(STYLE)]):
        figure = Figure(layout="constrained")
        shown = paint(figure.add_subplot())
        _fit(figure, title, height, shown, WIDE if is_wide else WIDTH)
        if settle is not None:
            figure.draw_without_rendering()
            figure.set_layout_engine("none")  # nothing else moves from here on
            settle(figure.axes[0])
        return Drawing(name, title, caption, _svg(figure), _png(figure), is_wide)


def legend_name(name: str) -> str:
    """A name for the legend, wrapped but not shortened: short forms could look the same."""
    return "\n".join(wrap(name, LEGEND_CHARACTERS, max_lines=MOST_LINES, placeholder="…"))


def _fit(figure: Figure, title: str, height: float, shown: Sequence[Artist], width: float) -> None:
    """Add the title above and the legend below, and make room for both."""
    columns = LEGEND_COLUMNS if width == WIDTH else 2 * LEGEND_COLUMNS
    lines = wrap(title, int(width * TITLE_CHARACTERS)) or [""]
    figure.set_size_inches(
        width, height + 0.15 * (len(lines) - 1) + 0.18 * _legend_lines(shown, columns)
    )
    figure.suptitle("\n".join(lines), x=0.02, ha="left", fontsize=10, fontweight="bold")
    if shown:
        figure.legend(handles=shown, loc="outside lower left", ncols=columns)


def _legend_lines(shown: Sequence[Artist], columns: int) -> int:
    """Lines of the legend's longest column. matplotlib fills columns one after the other; the
    first ones get one entry more if the number is not even."""
    lines = [str(entry.get_label()).count("\n") + 1 for entry in shown]
    return max(int(column.sum()) for column in np.array_split(lines, columns))


def _svg(figure: Figure) -> str:
    # No date and no version, so that the same numbers give the same bytes.
    no_metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    buffer = BytesIO()
    figure.savefig(buffer, format="svg", metadata=no_metadata)
    return buffer.getvalue().decode()


def _png(figure: Figure) -> bytes:
    buffer = BytesIO()
    figure.savefig(buffer, format="png", dpi=DOTS_PER_INCH, metadata={"Software": None})
    return buffer.getvalue()
