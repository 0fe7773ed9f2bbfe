"""The report of an experiment: a page, its figures and tables as files, and all of it as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lpf.experiments.document import Experiment
from lpf.report.documents import as_json
from lpf.report.drawing import Drawing
from lpf.report.exhibit_csv import table_csv
from lpf.report.exhibit_digest import digest
from lpf.report.exhibit_figures import drawn
from lpf.report.exhibit_tables import check_table
from lpf.report.exhibits_named import NamedStudy, named
from lpf.report.experiment_page import NUMBERS, experiment_page
from lpf.storage.files import write_atomically

PAGE = "index.html"
FIGURES = "figures"
DIGEST = "digest.json"


def write_experiment_report(document: Experiment | Mapping[str, Any], folder: Path) -> Path:
    """Writes ``index.html``, ``figures/`` (PNG and SVG), ``tables/`` (CSV), ``experiment.json``,
    from which the same report can be made again, and ``digest.json``, the tables in few bytes;
    returns the page's path. The same document gives the same bytes. ConfigError for a document that
    cannot be shown as it stands, an empty figure among others, or without matplotlib; nothing is
    written then."""
    experiment = document if isinstance(document, Experiment) else Experiment.from_dict(document)
    studies = named(experiment.studies)
    for study in studies:
        for one in study.all_tables:
            check_table(one.table)
    drawings = [[drawn(one.figure, one.name) for one in study.figures] for study in studies]
    whole = experiment_page(experiment, studies, drawings)
    for path, content in _files(studies):
        write_atomically(folder / path, content)
    for drawing in _flat(drawings):
        drawing.write(folder / FIGURES)
    write_atomically(folder / NUMBERS, as_json(experiment.to_dict()))
    write_atomically(folder / DIGEST, digest(experiment, studies))
    write_atomically(folder / PAGE, whole.encode())
    return folder / PAGE


def _files(studies: list[NamedStudy]) -> Iterator[tuple[str, bytes]]:
    return ((table.file, table_csv(table.table)) for study in studies for table in study.all_tables)


def _flat(drawings: list[list[Drawing]]) -> Iterator[Drawing]:
    return (drawing for own in drawings for drawing in own)
