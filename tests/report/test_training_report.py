from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from page_outline import Outline, png_size
from trained_runs import really_trained, trained, with_an_undefined_epoch

from lpf.report import write_training_report
from lpf.training import FIFTEEN_SEEDS, SEVEN_SEEDS, Trained

FIGURES = {
    "seed-accuracy",
    "seed-loss",
    "convergence",
    "accuracy-gap",
    "loss-parts",
    "loss-over-epochs",
}


def report(run: Trained, folder: Path, name: str = "made up") -> str:
    return write_training_report(run, folder, dataset_name=name).read_text(encoding="utf-8")


def numbers_of(folder: Path) -> dict[str, object]:
    document = json.loads((folder / "training.json").read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def numbers_in(value: object) -> Iterator[float]:
    if isinstance(value, dict):
        for inner in value.values():
            yield from numbers_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from numbers_in(inner)
    elif isinstance(value, int | float):
        yield value


@dataclass(frozen=True)
class Written:
    run: Trained
    folder: Path
    html: str


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    folder = tmp_path_factory.mktemp("report")
    run = trained()
    return Written(run, folder, report(run, folder))


def test_the_page_needs_no_other_file(written: Written) -> None:
    for outside in ("http", "src=", "<link", "<script", "@import", "xlink"):
        assert outside not in written.html
    assert re.findall(r"url\((?!#)", written.html) == []


def test_ids_that_a_figure_refers_to_are_in_the_page_once(written: Written) -> None:
    ids = Outline(written.html).ids
    meant = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', written.html))
    assert len(ids) == len(set(ids))
    assert meant
    assert meant <= set(ids)


@pytest.mark.parametrize("seeds", [(7,), (4, 2**63 - 1, 2), SEVEN_SEEDS, FIFTEEN_SEEDS])
def test_every_seed_is_in_the_page_the_best_first(seeds: tuple[int, ...], tmp_path: Path) -> None:
    run = trained(seeds, members=5)
    html = report(run, tmp_path)
    rows = re.findall(r'<th scope="row" class="word">(\d+)</th>', html)
    best_first = sorted(
        run.histories, key=lambda one: (-one.best.validation_accuracy, one.best.validation_loss)
    )
    assert [int(row) for row in rows] == [one.seed for one in best_first]
    assert html.count("yes, the best") == 1


@pytest.mark.parametrize("aggregator", [True, False])
def test_figures_are_files_and_part_of_the_page(aggregator: bool, tmp_path: Path) -> None:
    html = report(trained(aggregator=aggregator), tmp_path)
    names = FIGURES | ({"aggregator-loss"} if aggregator else set())
    assert {path.stem for path in tmp_path.glob("*.png")} == names
    assert {path.stem for path in tmp_path.glob("*.svg")} == names
    assert Outline(html).tags.count("svg") == Outline(html).tags.count("figure") == len(names)
    assert ("Learned aggregator" in html) is aggregator
    for name in names:
        assert min(png_size(tmp_path / f"{name}.png")) > 200
        drawn = ElementTree.parse(tmp_path / f"{name}.svg")
        assert len(list(drawn.iter("{http://www.w3.org/2000/svg}path"))) > 10


def test_one_seed_of_one_epoch_is_enough(tmp_path: Path) -> None:
    html = report(trained((7,), members=1, aggregator=False, epochs=1), tmp_path)
    assert "±" not in html  # one seed has no spread
    assert "1 seed<" in html


def test_names_are_escaped(tmp_path: Path) -> None:
    evil = '<script>alert("x")</script> & $a_b$'
    run = trained(predicate=evil, warnings=(f"{evil} is odd.",))
    html = report(run, tmp_path, evil)
    assert "<script" not in html
    assert html.count("&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; $a_b$") >= 4
    assert numbers_of(tmp_path)["dataset"] == evil


def test_warnings_come_first_and_once(written: Written, tmp_path: Path) -> None:
    html = report(trained(warnings=("level: fitted on 12 entities only.",)), tmp_path)
    assert html.count("level: fitted on 12 entities only.") == 1
    assert html.index("fitted on 12 entities") < html.index("Item accuracy")
    assert Outline(html).open == []
    assert "There are no warnings" in written.html


def test_colours_of_figures_follow_the_reader(written: Written) -> None:
    drawings = written.html[written.html.index("<svg") :]
    assert "fill: var(--first)" in drawings
    assert re.findall(r"#[0-9a-f]{6}\b", drawings) == []
    assert "var(--" not in (written.folder / "seed-loss.svg").read_text()


def test_all_numbers_are_stored_and_finite(written: Written) -> None:
    run, document = written.run, numbers_of(written.folder)
    assert all(math.isfinite(number) for number in numbers_in(document))
    seeds = document["seeds"]
    assert isinstance(seeds, list)
    assert [one["standing"] for one in seeds] == ["selected", "member", "other"]
    by_seed = {one.seed: one for one in run.histories}
    for one in seeds:
        known = by_seed[one["seed"]]
        assert one["epochs"]["validation_loss"] == [e.validation_loss for e in known.epochs]
        assert one["best_epoch"] == known.best_epoch == 5
        assert one["converged"] is known.converged
        assert one["weighted_kl"] == pytest.approx(0.01 * one["best"]["validation_kl"])
    accuracies = [one.best.validation_accuracy for one in run.histories]
    spread = document["spread"]
    assert isinstance(spread, dict)
    assert spread["validation_accuracy"]["mean"] == pytest.approx(sum(accuracies) / 3)
    assert spread["validation_accuracy"]["selected"] == max(accuracies)


def test_scores_fits_and_the_second_stage_are_in_the_numbers(written: Written) -> None:
    run, document = written.run, numbers_of(written.folder)
    assert document["scores"] == {
        one.place: {"level": one.by_predicate["level"].to_dict()} for one in run.scores
    }
    fitted, aggregator = document["fitted"], document["aggregator"]
    assert isinstance(fitted, dict)
    assert isinstance(aggregator, list)
    assert fitted["level"]["parameters"]["temperature"] == 1.2
    assert fitted["level"]["nll_cross_fitted"] == 0.55
    assert fitted["level"]["learned_temperature"] == 0.9
    assert [one["seed"] for one in aggregator] == list(run.config.seeds)
    assert aggregator[0]["epochs"][1]["train_loss"] == 0.49


def test_numbers_that_are_not_finite_are_null_with_a_warning(tmp_path: Path) -> None:
    html = report(with_an_undefined_epoch(trained()), tmp_path)
    text = (tmp_path / "training.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text
    assert "2 numbers are infinite or undefined" in html
    assert "epochs.train_kl.5" in html


def test_the_same_run_gives_the_same_bytes(written: Written, tmp_path: Path) -> None:
    report(trained(), tmp_path)
    first = {path.name: path.read_bytes() for path in written.folder.iterdir()}
    second = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert first == second
    assert len(first) == 2 + 2 * len(FIGURES | {"aggregator-loss"})


def test_a_run_from_the_trainer(tmp_path: Path) -> None:
    run = really_trained()
    html = report(run, tmp_path, "small")
    assert "Training report: small" in html
    for seed in (11, 22):
        assert str(seed) in Outline(html).cells
    assert all(math.isfinite(number) for number in numbers_in(numbers_of(tmp_path)))


def test_importing_the_package_imports_neither_torch_nor_matplotlib() -> None:
    program = (
        "import sys, lpf.report\n"
        "assert not {'torch', 'matplotlib'} & set(sys.modules), 'imported too early'"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_report_on_folds_does_not_mention_early_stopping(tmp_path: Path) -> None:
    plain = trained(aggregator=False)
    folds = replace(plain, scores=(replace(plain.held_out, data="out of fold"),))
    html = report(folds, tmp_path)
    for words in ("stopped early", "Seeds that stopped", "early stopping", "single validation"):
        assert words not in html
    for words in ("Item accuracy on held-out folds", "no seed stops before the last epoch"):
        assert words in html
    assert "level: accuracy out of fold" in html
