"""The report of an experiment: a page, its figures and tables as files, and all of it as JSON.

The page of an experiment: what was found first, then study by study, then what made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lpf.report.documents import as_json
from lpf.report.drawing import Drawing
from lpf.report.page import (
    bullets,
    contents,
    definitions,
    figures,
    glance,
    make_page,
    section,
    text,
    warnings_box,
)
from lpf.storage.atomic_files import write_atomically
from lpf_paper.document import Experiment, Made
from lpf_paper.exhibits import Example, Table, Value
from lpf_paper.report.exhibit_figures import drawn
from lpf_paper.report.exhibit_tables import READING, check_table, digest, exhibit_table, table_csv
from lpf_paper.report.named_exhibits import NamedExample, NamedStudy, NamedTable, named
from lpf_paper.report.quantities import duration

NUMBERS = "experiment.json"
QUICK = (
    "This was a quick run, with smaller budgets than the full one: it shows that everything works, "
    "and its numbers are not to be quoted."
)
METHOD = "method-of-the-numbers"


def experiment_page(
    experiment: Experiment, studies: Sequence[NamedStudy], drawings: Sequence[Sequence[Drawing]]
) -> str:
    """``drawings`` of each study in the order of its figures."""
    parts = [
        glance(list(_at_a_glance(experiment))),
        _summary(experiment.summary),
        warnings_box([*[QUICK] * experiment.made.quick, *experiment.cautions]),
        f'<p class="caption">{text(READING)}</p>',
        *(_study(*pair) for pair in zip(studies, drawings, strict=True)),
        section("How the numbers were made", _made(experiment.made), id=METHOD),
        f"<footer>Every number of this page stands in {NUMBERS} beside it.</footer>",
    ]
    entries = [(one.name, one.study.title) for one in studies]
    listed = contents([*entries, (METHOD, "How the numbers were made")])
    return make_page(experiment.title, parts, listed)


def _at_a_glance(experiment: Experiment) -> Iterator[tuple[str, str]]:
    made = experiment.made
    tables = sum(len(study.tables) for study in experiment.studies)
    drawn = sum(len(study.figures) for study in experiment.studies)
    yield "Studies", str(len(experiment.studies))
    yield "Tables and figures", f"{tables} and {drawn}"
    beside = [cell for cell in _values(experiment) if cell.paper is not None]
    if beside:
        doubted = sum(cell.doubt is not None for cell in beside)
        yield "Numbers beside the paper's", f"{len(beside)} ({doubted} in doubt)"
    yield "Seeds", str(len(made.seeds))
    if made.results:
        yield "Results", f"{made.results:,} ({made.kept:,} kept)"
    yield "Time", duration(made.seconds)
    yield "Run", "quick" if made.quick else "full"


def _time(made: Made) -> str:
    """A run that found its results done says nothing of how long they take."""
    time = duration(made.seconds)
    return f"{time}, {made.kept:,} of {made.results:,} results kept" if made.kept else time


def _values(experiment: Experiment) -> Iterator[Value]:
    for study in experiment.studies:
        for table in study.tables:
            yield from _values_of(table)


def _values_of(table: Table) -> Iterator[Value]:
    return (cell for row in table.rows for cell in row.cells if isinstance(cell, Value))


def _summary(sentences: Sequence[str]) -> str:
    return section("Summary", bullets(sentences)) if sentences else ""


def _study(named: NamedStudy, drawings: Sequence[Drawing]) -> str:
    study = named.study
    parts = [f'<p class="question">{text(study.question)}</p>']
    if study.findings:
        parts.append(f'<div class="findings">\n{bullets(study.findings)}\n</div>')
    parts += map(_table, named.tables)
    if drawings:
        parts.append(figures(drawings))
    parts += map(_example, named.examples)
    return section(study.title, *parts, id=named.name)


def _table(named: NamedTable) -> str:
    return exhibit_table(named.table, named.name, named.file)


def _example(named: NamedExample) -> str:
    example: Example = named.example
    facts = definitions(example.facts) if example.facts else ""
    return (
        f'<article class="example">\n<h3>{text(example.title)}</h3>\n{facts}\n'
        f"{_table(named.items)}\n</article>"
    )


def _made(made: Made) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in sorted(made.packages.items()))
    facts = [
        ("Command", made.command),
        ("Version of lpf", made.version),
        ("Machine", made.machine),
        ("Python", made.python),
        ("Packages", packages or "none recorded"),
        ("Seeds", ", ".join(map(str, made.seeds)) or "none"),
        ("Budget", "quick" if made.quick else "full"),
        ("Time", _time(made)),
        ("Finished", made.finished),
    ]
    return definitions(facts)


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
