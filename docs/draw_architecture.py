"""Draws docs/images/architecture.svg from the import graph of ``src/lpf``.

    python docs/draw_architecture.py

Rooms and their bands come from the table in CONTRIBUTING.md, arrows from the code. An arrow points
from a room to one it imports; an import that follows from other arrows is not drawn, nor is any
import of the lowest band, which every room uses.
"""

from __future__ import annotations

import ast
import re
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "lpf"
PICTURE = ROOT / "docs" / "images" / "architecture.svg"

WIDTH, MARGIN, LABEL = 1120, 24, 120
BOX_HEIGHT, BOX_GAP, BAND_GAP = 40, 18, 74


def bands() -> dict[str, list[str]]:
    """The rooms of each band, lowest layer first, as CONTRIBUTING.md lists them."""
    found: dict[str, list[str]] = {}
    for line in (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").splitlines():
        if band := re.match(r"\| \*\*(\w+)\*\* \|", line):
            found[band[1]] = []
        elif found and (room := re.match(r"\| `(\w+)` \|", line)):
            next(reversed(found.values())).append(room[1])
        elif found and not line.startswith("|"):
            break
    return found


def room_of(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if path != SOURCE / "__init__.py"]


def imported_names(path: Path) -> set[str]:
    """Dotted names that a file imports, at the top or inside functions."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def imported_rooms(path: Path, rooms: set[str]) -> set[str]:
    """The other rooms that a file imports from."""
    parts = (name.split(".") for name in imported_names(path))
    found = {split[1] for split in parts if split[0] == "lpf" and len(split) > 1}
    return (found & rooms) - {room_of(path)}


def graph() -> dict[str, set[str]]:
    """For each room, the rooms it imports from."""
    rooms = {room for names in bands().values() for room in names}
    edges: dict[str, set[str]] = {room: set() for room in rooms}
    for path in modules():
        edges[room_of(path)] |= imported_rooms(path, rooms)
    return edges


def reduced(edges: dict[str, set[str]]) -> dict[str, set[str]]:
    """Without the imports that follow from others."""

    def reachable(start: str) -> set[str]:
        found: set[str] = set()
        open_rooms = list(edges[start])
        while open_rooms:
            room = open_rooms.pop()
            if room not in found:
                found.add(room)
                open_rooms += edges[room]
        return found

    reach = {room: reachable(room) for room in edges}
    return {
        room: {
            other
            for other in others
            if not any(other in reach[between] for between in others - {other})
        }
        for room, others in edges.items()
    }


def draw() -> str:
    """The picture as SVG, the same for the same code."""
    places = _places()
    height = MARGIN * 2 + len(bands()) * BOX_HEIGHT + (len(bands()) - 1) * BAND_GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'font-family="system-ui, sans-serif" role="img" aria-labelledby="title">',
        '<title id="title">The rooms of lpf and what they import</title>',
        "<style>.room{fill:#eef2f8;stroke:#45618c}.name{fill:#1c2b45}.band{fill:#6a7280}"
        ".edge{fill:none;stroke:#8fa1bd;stroke-width:1.3}.head{fill:#8fa1bd}"
        "@media(prefers-color-scheme:dark){.room{fill:#1f2a3d;stroke:#8fb0e0}.name{fill:#e6edf8}"
        ".band{fill:#a0a8b8}.edge{stroke:#5f7396}.head{fill:#5f7396}}</style>",
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path class="head" d="M0 0L8 4L0 8z"/></marker></defs>',
    ]
    edges = reduced(graph())
    lowest = set(next(iter(bands().values())))
    for room in sorted(edges):
        drawn = sorted(edges[room] - lowest)
        parts += [_arrow(places[room], places[other]) for other in drawn]
    for band, rooms in bands().items():
        y = places[rooms[0]][1] + BOX_HEIGHT / 2 + 5
        parts.append(f'<text class="band" x="{MARGIN}" y="{y:g}" font-size="14">{band}</text>')
        parts += [_box(room, *places[room]) for room in rooms]
    return "\n".join([*parts, "</svg>"]) + "\n"


def _places() -> dict[str, tuple[float, float, float]]:
    """Left, top and width of each box. Doors on top, vocabulary at the bottom."""
    places: dict[str, tuple[float, float, float]] = {}
    listed = list(reversed(bands().values()))
    for row, rooms in enumerate(listed):
        space = WIDTH - LABEL - 2 * MARGIN
        width = min(130.0, (space - BOX_GAP * (len(rooms) - 1)) / len(rooms))
        used = width * len(rooms) + BOX_GAP * (len(rooms) - 1)
        left = MARGIN + LABEL + (space - used) / 2
        top = MARGIN + row * (BOX_HEIGHT + BAND_GAP)
        for column, room in enumerate(rooms):
            places[room] = (left + column * (width + BOX_GAP), top, width)
    return places


def _box(name: str, left: float, top: float, width: float) -> str:
    middle = left + width / 2
    return (
        f'<rect class="room" x="{left:.1f}" y="{top:g}" width="{width:.1f}" '
        f'height="{BOX_HEIGHT}" rx="6"/><text class="name" x="{middle:.1f}" '
        f'y="{top + 25:g}" font-size="14" text-anchor="middle">{escape(name)}</text>'
    )


def _arrow(start: tuple[float, float, float], end: tuple[float, float, float]) -> str:
    (left, top, width), (other_left, other_top, other_width) = start, end
    x, other_x = left + width / 2, other_left + other_width / 2
    if top == other_top:  # within a band: an arc below the boxes
        y = top + BOX_HEIGHT
        depth = y + 14 + 0.05 * abs(x - other_x)
        path = f"M{x:.1f} {y:g}C{x:.1f} {depth:.1f} {other_x:.1f} {depth:.1f} {other_x:.1f} {y:g}"
    else:
        y, bend = top + BOX_HEIGHT, (other_top - top - BOX_HEIGHT) * 0.5
        path = (
            f"M{x:.1f} {y:g}C{x:.1f} {y + bend:.1f} {other_x:.1f} {other_top - bend:.1f} "
            f"{other_x:.1f} {other_top:g}"
        )
    return f'<path class="edge" d="{path}" marker-end="url(#arrow)"/>'


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
