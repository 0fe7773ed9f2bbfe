"""Reports as HTML pages that need no other file, with every figure as PNG and SVG and every number
as JSON.

Besides the two reports, this package exports the building blocks of a page, so that other packages
can write reports in the same style: ``draw`` makes a figure from the bars and lines below, and
``make_page`` combines figures, tables and text. Drawing needs matplotlib
(``pip install 'lpf[report]'``); importing does not.
"""

from lpf.report.bars_and_lines import (
    CURVE_HEIGHT,
    ERROR_BARS,
    THICKNESS,
    Bars,
    Dashes,
    Look,
    error_bars,
    filling,
    height,
    in_lines,
    key,
    line_key,
    paint_bars,
)
from lpf.report.domains_report import write_domains_report
from lpf.report.drawing import LIGHT, WIDE, WIDTH, Drawing, draw, legend_name
from lpf.report.page import (
    PageColumn,
    PageRow,
    bullets,
    contents,
    cut,
    decimals,
    definitions,
    figures,
    glance,
    make_page,
    paragraph,
    percent,
    points,
    section,
    table,
    text,
    warnings_box,
)
from lpf.report.training_report import write_training_report
from lpf.report.training_run import as_json

__all__ = [
    "CURVE_HEIGHT",
    "ERROR_BARS",
    "LIGHT",
    "THICKNESS",
    "WIDE",
    "WIDTH",
    "Bars",
    "Dashes",
    "Drawing",
    "Look",
    "PageColumn",
    "PageRow",
    "as_json",
    "bullets",
    "contents",
    "cut",
    "decimals",
    "definitions",
    "draw",
    "error_bars",
    "figures",
    "filling",
    "glance",
    "height",
    "in_lines",
    "key",
    "legend_name",
    "line_key",
    "make_page",
    "paint_bars",
    "paragraph",
    "percent",
    "points",
    "section",
    "table",
    "text",
    "warnings_box",
    "write_domains_report",
    "write_training_report",
]
