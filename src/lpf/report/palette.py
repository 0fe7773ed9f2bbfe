"""Colours, by what they stand for. Told apart by colour-blind readers, and by lightness in grey."""

from __future__ import annotations

from collections.abc import Mapping

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
