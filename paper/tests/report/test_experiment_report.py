from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from html import escape
from pathlib import Path

import pytest
from made_up_experiments import EVIL, WRONG, extreme, made, realistic
from page_outline import Outline, png_size

from lpf.errors import ConfigError
from lpf_paper.document import Experiment
from lpf_paper.exhibits import (
    Better,
    Column,
    Figure,
    Row,
    Series,
    Shape,
    Standing,
    StudyResult,
    Table,
    Value,
)
from lpf_paper.report.exhibit_figures import draw_exhibit
from lpf_paper.report.exhibit_tables import exhibit_table, table_csv
from lpf_paper.report.experiment_report import write_experiment_report


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("realistic")
    write_experiment_report(realistic(), folder)
    return folder


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("parent") / "extreme"
    write_experiment_report(extreme(), folder)
    return folder


def html_of(folder: Path) -> str:
    return (folder / "index.html").read_text(encoding="utf-8")


def files_of(folder: Path) -> dict[str, bytes]:
    found = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def table_of(*rows: tuple[Standing, Value | str | None], better: Better | None = "higher") -> Table:
    column = Column("a", "A", "share", better, 2)
    made = (Row(f"r{n}", f"R{n}", (cell,), standing) for n, (standing, cell) in enumerate(rows))
    return Table("t", "T", "", (column,), tuple(made))


def shown(table: Table) -> str:
    return exhibit_table(table, "t", "tables/t.csv")


def bold(table: Table) -> list[str]:
    return re.findall(r"<strong>([^<]*)</strong>", shown(table))


def figure_of(shape: Shape, *series: Series, log_x: bool = False) -> Figure:
    return Figure("f", "F", "", shape, "x", "y", series, log_x)


def test_every_exhibit_is_in_the_page_and_a_file(folder: Path) -> None:
    html, files = html_of(folder), files_of(folder)
    for study in realistic().studies:
        assert f'<section id="{study.name}">' in html
        assert f'href="#{study.name}"' in html
        for table in study.tables:
            assert f">{table.title}</h3>" in html
            assert f"tables/{study.name}-{table.name}.csv" in files
        for figure in study.figures:
            assert f'aria-label="{figure.title}.' in html
            path = f"figures/{study.name}-{figure.name}"
            assert f"{path}.svg" in files
            assert min(png_size(folder / f"{path}.png")) > 300
    tags = Outline(html).tags
    assert tags.count("svg") == tags.count("figure") == 7
    assert tags.count("table") == 2
    assert {"index.html", "experiment.json", "digest.json"} <= set(files)
    assert len(files) == 3 + 2 * 7 + 2


@pytest.mark.parametrize("which", ["folder", "odd"])
def test_the_page_needs_nothing_but_itself(which: str, request: pytest.FixtureRequest) -> None:
    html = html_of(request.getfixturevalue(which))
    for outside in ("src=", "<link", "<script", "@import", "xlink"):
        assert outside not in html
    assert re.findall(r'href="(?!#)', html) == []
    assert re.findall(r"url\((?!#)", html) == []
    assert re.findall(r"#[0-9a-f]{6}\b", html[html.index("<svg") :]) == []


@pytest.mark.parametrize("which", ["folder", "odd"])
def test_ids_are_there_once_and_elements_closed(which: str, request: pytest.FixtureRequest) -> None:
    html = html_of(request.getfixturevalue(which))
    outline = Outline(html)
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))
    assert set(re.findall(r'(?:url\(#|href="#)([^)"]+)', html)) <= set(outline.ids)


def test_text_from_outside_is_text(odd: Path) -> None:
    html = html_of(odd)
    assert "<b>" not in html
    assert html.count(escape(EVIL)) > 100
    assert re.findall(r"https?:(?!//example\.org)", html) == []


def test_files_stay_in_the_folder(odd: Path) -> None:
    assert [path.name for path in odd.parent.iterdir()] == ["extreme"]
    names = files_of(odd)
    assert all(re.fullmatch(r"((tables|figures)/)?[a-z0-9-]+\.[a-z]+", name) for name in names)
    assert sum(name.endswith(".csv") for name in names) == 6  # though three names are the same
    assert sum(name.endswith(".svg") for name in names) == 9


def test_a_quick_run_says_so_first(odd: Path, folder: Path) -> None:
    assert html_of(odd).index("This was a quick run") < html_of(odd).index("<section id=")
    assert "quick run" not in html_of(folder)


def test_the_page_says_how_the_numbers_were_made(folder: Path) -> None:
    html, facts = html_of(folder), made()
    for said in (facts.command, facts.version, facts.machine, facts.python, facts.finished):
        assert f"<dd>{said}</dd>" in html
    assert "<dd>1, 2, 3, 4, 5</dd>" in html
    assert "<dd>numpy 2.1.0, torch 2.4.0</dd>" in html
    assert "<dd>2 h 05 min</dd>" in html
    assert "<dd>40 (4 in doubt)</dd>" in html


def test_a_run_with_stored_results_says_so(tmp_path: Path) -> None:
    short = replace(realistic(), studies=(), run=replace(made(), results=1200, kept=1100))
    write_experiment_report(short, tmp_path)
    assert "1,100 of 1,200 results" in html_of(tmp_path)


@pytest.mark.parametrize("experiment", [realistic(), extreme()], ids=["realistic", "extreme"])
def test_the_report_can_be_made_again_from_its_numbers(
    experiment: Experiment, tmp_path: Path
) -> None:
    few = replace(experiment, studies=(replace(experiment.studies[0], figures=()),))
    write_experiment_report(few, tmp_path / "one")
    plain: Mapping[str, object] = json.loads((tmp_path / "one" / "experiment.json").read_bytes())
    write_experiment_report(plain, tmp_path / "two")
    assert files_of(tmp_path / "one") == files_of(tmp_path / "two")


def test_a_csv_holds_every_digit(folder: Path) -> None:
    (table,) = realistic().studies[0].tables
    text = (folder / "tables" / "main-results-main.csv").read_text(encoding="utf-8")
    read = list(csv.DictReader(text.splitlines()))
    assert [line["row"] for line in read] == [row.name for row in table.rows]
    for line, row in zip(read, table.rows, strict=True):
        assert (line["title"], line["standing"]) == (row.title, row.standing)
        assert line["note"] == (row.note or "")
        for column, cell in zip(table.columns, row.cells, strict=True):
            for name in ("value", "sd", "low", "high", "paper"):
                head = column.name if name == "value" else f"{column.name}.{name}"
                number = getattr(cell, name) if isinstance(cell, Value) else None
                found = line.get(head) or None
                assert (None if found is None else float(found)) == number


def test_a_csv_of_texts_with_lines_and_quotes() -> None:
    said = 'one, "two"\nthree'
    text = table_csv(table_of(("ours", said), ("ours", Value(math.nan)))).decode()
    head, *rows = csv.reader(text.splitlines(keepends=True))
    assert head == ["row", "title", "standing", "a", "note"]
    assert [row[3] for row in rows] == [said, ""]


def test_a_cell_with_all_it_can_hold() -> None:
    html = shown(table_of(("ours", Value(0.99, 0.01, 0.9, 1.0, 0.978, "why not"))))
    assert "<span>0.99</span>" in html
    assert '<span class="spread">± 0.01</span>' in html
    assert '<span class="paper">paper 0.98</span> <span class="paper">(+0.01)</span><sup>' in html
    assert '<span class="spread">[0.90, 1.00]</span>' in shown(
        table_of(("ours", Value(0.95, low=0.9, high=1.0)))
    )


def test_a_spread_that_does_not_reach_the_last_digit_is_left_out() -> None:
    assert "±" not in shown(table_of(("ours", Value(0.99, 0.0))))
    assert "±" not in shown(table_of(("ours", Value(0.99, 0.004))))
    assert "± 0.01" in shown(table_of(("ours", Value(0.99, 0.006))))
    # An interval over entities in its place would look like a far larger spread than the others'.
    assert '"spread"' not in shown(table_of(("ours", Value(0.99, 0.0, 0.9, 1.0))))


def test_a_number_that_rounds_to_0_has_no_sign_beside_its_interval() -> None:
    html = shown(table_of(("ours", Value(-0.0001, low=-0.0004, high=0.0002, paper=0.0))))
    assert '<span>0.00</span> <span class="spread">[0.00, 0.00]</span>' in html
    assert '<span class="paper">(0.00)</span>' in html
    alone = shown(table_of(("ours", Value(0.0001)), ("ours", Value(-0.0001)), better=None))
    assert "<span>&lt; 0.01</span>" in alone
    assert "<span>0.00</span>" in alone


def test_the_page_says_what_spreads_are_over(folder: Path) -> None:
    said = "one standard deviation over runs: seeds, data sets or domains, as the caption says"
    assert said in html_of(folder)


def test_a_number_that_only_the_paper_has() -> None:
    html = shown(table_of(("rival", Value(None, paper=0.5))))
    assert '<span>—</span> <br><span class="paper">paper 0.50</span></td>' in html


def test_equal_doubts_share_a_footnote(folder: Path) -> None:
    html = html_of(folder)
    assert html.count("†1</a>") == 3
    assert html.count("†2</a>") == 1
    assert html.count(f"†1 {WRONG}</li>") == 1
    assert html.count(WRONG) == 1


def test_the_best_is_bold_and_no_reference_is() -> None:
    rows: list[tuple[Standing, Value]] = [
        ("reference", Value(0.99)),
        ("ours", Value(0.9)),
        ("rival", Value(0.95)),
        ("rival", Value(0.949)),  # shown as the best is
        ("rival", Value(math.nan)),
        ("reference", Value(0.95)),
    ]
    assert bold(table_of(*rows)) == ["0.95", "0.95"]
    assert bold(table_of(*rows, better="lower")) == ["0.90"]
    assert bold(table_of(*rows, better=None)) == []
    assert bold(table_of(*rows[:2])) == []  # nothing to choose from
    assert bold(table_of(("ours", Value(math.inf)), *rows[1:3], better="lower")) == ["0.90"]


def test_a_row_that_failed_says_why_in_its_place() -> None:
    table = table_of(("ours", None))
    failed = replace(table, rows=(replace(table.rows[0], note="it <crashed>"),))
    assert '<td class="note" colspan="1"><div>it &lt;crashed&gt;</div></td>' in shown(failed)


@pytest.mark.parametrize("shape", ["lines", "points", "bars", "reliability", "matrix"])
@pytest.mark.parametrize("y", [(), (None, None), (math.nan, math.inf)], ids=repr)
def test_an_empty_panel_is_refused(
    shape: Shape, y: tuple[float | None, ...], tmp_path: Path
) -> None:
    empty = figure_of(shape, Series("a", (0.1, 0.2)[: len(y)], y))
    study = StudyResult("s", "S", "?", figures=(empty,))
    with pytest.raises(ConfigError, match=r"'f'.*empty.*Nothing was written"):
        write_experiment_report(Experiment("T", made(), (study,)), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_figure_without_series_is_refused() -> None:
    with pytest.raises(ConfigError, match="empty"):
        draw_exhibit(figure_of("lines"), "f")


def test_series_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ConfigError, match="1 values of y for 2 of x"):
        draw_exhibit(figure_of("lines", Series("a", (1, 2), (1.0,))), "f")
    with pytest.raises(ConfigError, match="1 values of low for 2 of x"):
        draw_exhibit(figure_of("lines", Series("a", (1, 2), (1.0, 2.0), (1.0,))), "f")
    with pytest.raises(ConfigError, match="a low above its high"):
        draw_exhibit(figure_of("bars", Series("a", ("one",), (1.0,), (2.0,), (1.0,))), "f")
    with pytest.raises(ConfigError, match="'one' on x"):
        draw_exhibit(figure_of("lines", Series("a", ("one",), (1.0,))), "f")
    with pytest.raises(ConfigError, match="0 on a logarithmic"):
        draw_exhibit(figure_of("points", Series("a", (0,), (1.0,)), log_x=True), "f")


def test_the_caption_names_what_is_not_drawn() -> None:
    series = (Series("a", (1, 2), (1.0, math.inf)), Series("b", (1, 2), (None, None)))
    caption = draw_exhibit(figure_of("lines", *series), "f").caption
    assert caption == "Without a finite point: b. Infinite values are not drawn: a."


def test_rows_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    table = table_of(("ours", None))
    short = replace(table, rows=(Row("r", "R", ()),))
    study = StudyResult("s", "S", "?", tables=(short,))
    with pytest.raises(ConfigError, match="row 'r' has 0 cells for 1 columns"):
        write_experiment_report(Experiment("T", made(), (study,)), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ConfigError, match="same name: a, a"):
        shown(replace(table, columns=table.columns * 2, rows=()))
