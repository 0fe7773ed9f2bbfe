"""The report of an experiment: an HTML page, figures and tables as files, and all of it as JSON.

The page begins with the summary, then shows each study, then how the numbers were computed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lpf.report import (
    Drawing,
    as_json,
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
from lpf.storage import write_atomically
from lpf_paper.document import Experiment, RunInfo
from lpf_paper.exhibits import Example, Table, Value
from lpf_paper.report.digest import digest
from lpf_paper.report.exhibit_figures import draw_exhibit
from lpf_paper.report.exhibit_tables import READING, check_table, exhibit_table, table_csv
from lpf_paper.report.named_exhibits import NamedExample, NamedStudy, NamedTable, named
from lpf_paper.report.quantities import duration

NUMBERS = "experiment.json"
QUICK = (
    "This was a quick run with smaller budgets than the full run: it shows that everything works. "
    "Do not quote its numbers."
)
METHOD = "method-of-the-numbers"


def experiment_page(
    experiment: Experiment,
    studies: Sequence[NamedStudy],
    drawings: Sequence[Sequence[Drawing]],
) -> str:
    """``drawings`` holds, for each study, its figures in order."""
    parts = [
        glance(list(_at_a_glance(experiment))),
        _summary(experiment.summary),
        warnings_box([*[QUICK] * experiment.run.quick, *experiment.warnings]),
        f'<p class="caption">{text(READING)}</p>',
        *(_study(*pair) for pair in zip(studies, drawings, strict=True)),
        section("How the numbers were made", _run_info(experiment.run), id=METHOD),
        f"<footer>Every number of this page is in {NUMBERS} in the same folder.</footer>",
    ]
    entries = [(one.name, one.study.title) for one in studies]
    listed = contents([*entries, (METHOD, "How the numbers were made")])
    return make_page(experiment.title, parts, listed)


def _at_a_glance(experiment: Experiment) -> Iterator[tuple[str, str]]:
    run = experiment.run
    tables = sum(len(study.tables) for study in experiment.studies)
    drawn = sum(len(study.figures) for study in experiment.studies)
    yield "Studies", str(len(experiment.studies))
    yield "Tables and figures", f"{tables} and {drawn}"
    with_paper = [cell for cell in _values(experiment) if cell.paper is not None]
    if with_paper:
        doubted = sum(cell.doubt is not None for cell in with_paper)
        yield "Numbers compared with the paper's", f"{len(with_paper)} ({doubted} in doubt)"
    yield "Seeds", str(len(run.seeds))
    if run.results:
        yield "Results", f"{run.results:,} ({run.kept:,} from earlier runs)"
    yield "Time", duration(run.seconds)
    yield "Run", "quick" if run.quick else "full"


def _time(run: RunInfo) -> str:
    """With stored results the time says little about how long the experiment takes."""
    time = duration(run.seconds)
    if not run.kept:
        return time
    return f"{time}, with {run.kept:,} of {run.results:,} results from earlier runs"


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


def _run_info(run: RunInfo) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in sorted(run.packages.items()))
    facts = [
        ("Command", run.command),
        ("Version of lpf", run.version),
        ("Machine", run.machine),
        ("Python", run.python),
        ("Packages", packages or "none recorded"),
        ("Seeds", ", ".join(map(str, run.seeds)) or "none"),
        ("Budget", "quick" if run.quick else "full"),
        ("Time", _time(run)),
        ("Finished", run.finished),
    ]
    return definitions(facts)


PAGE = "index.html"
FIGURES = "figures"
DIGEST = "digest.json"


def write_experiment_report(document: Experiment | Mapping[str, Any], folder: Path) -> Path:
    """Writes the report of an experiment and returns the path of its page.

    Writes ``index.html``, ``figures/`` (PNG and SVG), ``tables/`` (CSV), ``experiment.json``, from
    which the same report can be written again, and ``digest.json``, a small file with the tables.
    The same document gives the same bytes. Raises ConfigError, and writes nothing, if matplotlib is
    missing or an exhibit cannot be shown, such as a figure without points.
    """
    experiment = document if isinstance(document, Experiment) else Experiment.from_dict(document)
    studies = named(experiment.studies)
    for study in studies:
        for one in study.all_tables:
            check_table(one.table)
    drawings = [[draw_exhibit(one.figure, one.name) for one in study.figures] for study in studies]
    page = experiment_page(experiment, studies, drawings)
    for path, content in _files(studies):
        write_atomically(folder / path, content)
    for figure in _flat(drawings):
        figure.write(folder / FIGURES)
    write_atomically(folder / NUMBERS, as_json(experiment.to_dict()))
    write_atomically(folder / DIGEST, digest(experiment, studies))
    write_atomically(folder / PAGE, page.encode())
    return folder / PAGE


def _files(studies: list[NamedStudy]) -> Iterator[tuple[str, bytes]]:
    return ((table.file, table_csv(table.table)) for study in studies for table in study.all_tables)


def _flat(drawings: list[list[Drawing]]) -> Iterator[Drawing]:
    return (one for own in drawings for one in own)
