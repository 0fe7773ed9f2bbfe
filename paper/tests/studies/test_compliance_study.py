from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from made_answers import Skill, keep_made
from study_checks import (
    assert_can_be_shown,
    assert_can_be_told,
    keep_exact,
    line,
    sentence,
    table,
    value,
)

from builders import model_config, sharp_tensors
from lpf.evaluation.model_cache import FORMAT
from lpf.evaluation.predictions import Predictions
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.specs import Cell, EvalSpec
from lpf.model.artefact import ModelCard, save_model
from lpf.training.history import Epoch, SeedHistory
from lpf_paper.exhibits import Figure, StudyResult, Value
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.printed import printed_table
from lpf_paper.studies.compliance import ComplianceStudy
from lpf_paper.studies.compliance_runs import BY_SEED, ONCE, REFERENCES, main_train_spec
from lpf_paper.studies.compliance_seeds import seeds_table
from lpf_paper.studies.study import ResultReader, Runs
from lpf_paper.studies.study_figures import bar_figure, error_figure, with_points
from lpf_paper.studies.study_tables import COLUMNS, comparison_table

QUICK, FULL, STUDY = quick_plan(), full_plan(), ComplianceStudy()
SEEDS = (42, 1011, 2024)
SMALL = replace(
    FULL,
    main_seeds=SEEDS,
    main_repetitions=(1, 2),
    test_entities=200,
    methods=(
        "lpf_robust",
        "lpf_paper_best",
        "lpf_learned",
        "vae_only",
        "deterministic_ensemble_average",
        "transformer",
        "edl_individual_broken",
        "majority_vote",
        "prior",
        "perfect_reader",
        "oracle",
    ),
)
RIVALS = [method for method in SMALL.methods if method not in ("lpf_robust", *REFERENCES)]
TWO_TABLES = ("large", "more")
ACCURACIES = dict(zip(SEEDS, (0.84, 0.85, 0.86), strict=True))


@pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
def test_every_method_has_cells_on_both_tests_and_none_twice(plan: ExperimentPlan) -> None:
    cells = STUDY.cells(plan)
    assert len(set(cells)) == len(cells)
    own = [cell for cell in cells if cell.eval_spec == EvalSpec()]
    large = [cell for cell in cells if cell.eval_spec.entities == plan.test_entities]
    assert len(own) + len(large) == len(cells)
    assert [replace(cell, eval_spec=EvalSpec()) for cell in large] == own
    assert {cell.method for cell in own} == set(plan.methods)


@pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
def test_methods_of_one_network_have_one_cell_per_member(plan: ExperimentPlan) -> None:
    for method in BY_SEED:
        cells = [
            cell
            for cell in STUDY.cells(plan)
            if (cell.method, cell.eval_spec) == (method, EvalSpec())
        ]
        assert [cell.settings for cell in cells] == [
            (("member", place),) for place in range(len(plan.main_seeds))
        ]
        assert {cell.train_spec for cell in cells} == {main_train_spec(plan)}


def test_others_are_repeated_unless_nothing_changes_or_they_are_slow() -> None:
    others = [cell for cell in STUDY.cells(FULL) if cell.method not in BY_SEED]
    counts = Counter(cell.method for cell in others if cell.eval_spec == EvalSpec())
    once = {method for method, count in counts.items() if count == 1}
    assert once == {*ONCE, "transformer"}
    assert {counts[method] for method in counts.keys() - once} == {len(FULL.main_repetitions)}
    assert "transformer" not in {cell.method for cell in STUDY.cells(QUICK)}


def test_all_cells_share_one_search() -> None:
    for plan in (QUICK, FULL):
        searched = {replace(cell.train_spec, seed=0) for cell in STUDY.cells(plan)}
        assert searched == {replace(main_train_spec(plan), seed=0)}


def history(seed: int) -> SeedHistory:
    """The second epoch is the best; only seed 1011 is stopped by the number of epochs."""
    best = Epoch(1.0, 0.9, 2.0, 0.8, 0.75, 0.55, 20.0, ACCURACIES[seed], 0.5)
    worse = replace(best, validation_loss=0.9, validation_accuracy=0.99)
    return SeedHistory(seed, (worse, best, worse), converged=seed != 1011)


def keep_histories(folder: Path, plan: ExperimentPlan = SMALL) -> None:
    """A small real model whose training is made up."""
    home = ResultReader(folder).models._home(main_train_spec(plan), "networks")
    config = model_config(len(SEEDS), seeds=SEEDS)
    card = ModelCard("test", "random weights", "tests", "anything else", {}, ())
    document = {
        "format": FORMAT,
        "version": save_model(home, config, sharp_tensors(config), card),
        "seconds": 1.0,
        "histories": [history(seed).to_dict() for seed in plan.main_seeds],
    }
    (home / "training.json").write_text(json.dumps(document))


def made_result(folder: Path, skill: Callable[[Cell], Skill]) -> StudyResult:
    keep_histories(folder)
    keep_made(folder, STUDY.cells(SMALL), skill)
    return STUDY.result(SMALL, ResultReader(folder))


def ours_is_best(cell: Cell) -> Skill:
    signals = {"lpf_robust": 3.0, "perfect_reader": 5.0, "oracle": 9.0, "prior": 0.1}
    return Skill(signals.get(cell.method, 2.0), 3.0 if cell.method == "lpf_paper_best" else 1.0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("main")


@pytest.fixture(scope="module")
def shown(folder: Path) -> StudyResult:
    return made_result(folder, ours_is_best)


def test_everything_can_be_shown(shown: StudyResult) -> None:
    assert_can_be_shown(shown)
    assert [one.name for one in shown.tables] == [
        "main",
        "large",
        "more",
        "against",
        "seeds",
        "seed_stats",
        "confidence",
        "costs",
        "confusions",
        "by_label",
        "by_credibility",
    ]
    assert [one.name for one in shown.figures] == [
        "seed_variance",
        "loss_parts",
        "accuracy_ece",
        "error_rates",
        "runtime",
        "reliability",
        "risk_coverage",
        "confusion",
        "confusion_paper",
    ]


def test_rows_stand_by_their_nll_and_references_last(shown: StudyResult) -> None:
    for name in ("main", "large", "more", "confidence", "costs"):
        rows = [row.name for row in table(shown, name).rows][: len(SMALL.methods)]
        assert sorted(rows) == sorted(SMALL.methods)
        assert rows[0] == "lpf_robust"
        assert rows[-3:] == ["oracle", "perfect_reader", "prior"]


@pytest.mark.parametrize(
    ("name", "printed"),
    [("main", "main_results"), ("confidence", "confidence"), ("costs", "runtime")],
)
def test_what_the_paper_alone_has_stands_below(shown: StudyResult, name: str, printed: str) -> None:
    rows = table(shown, name).rows[len(SMALL.methods) :]
    assert {row.name for row in rows} == set(printed_table(printed).rows) - set(SMALL.methods)
    assert all((row.note or "").startswith("not ") for row in rows)


def test_the_papers_language_models_are_in_its_main_table(shown: StudyResult) -> None:
    main = table(shown, "main")
    asked = value(main, "llm:qwen3-32b", "accuracy")
    assert (asked.value, asked.paper) == (None, 0.98)
    assert [row.name for row in main.rows if row.name.startswith("llm:")] == [
        "llm:llama-3.3-70b-versatile",
        "llm:qwen3-32b",
        "llm:kimi-k2-instruct-0905",
        "llm:gpt-oss-120b",
    ]
    note = line(main, "llm:qwen3-32b").note or ""
    assert note.startswith("not asked here: needs an endpoint (lpf evaluate --llm)")


def test_every_measure_that_has_a_column_is_shown_once_besides_raw_nll(shown: StudyResult) -> None:
    large, more = ([column.name for column in table(shown, name).columns] for name in TWO_TABLES)
    assert set(large) & set(more) == {"raw_nll"}
    measured = {name for name in COLUMNS if "f1" in name or "ece" in name or "brier" in name}
    assert measured <= {*large, *more}


def test_the_number_of_collapsed_runs_is_noted(shown: StudyResult) -> None:
    """Here it answers as well as others."""
    told = "in 0 of 2 runs it gives the same answer to 99 % of companies or more"
    for name in ("main", "large"):
        assert line(table(shown, name), "edl_individual_broken").note == told
        assert line(table(shown, name), "majority_vote").note is None


def test_spreads_are_over_members_or_repetitions(shown: StudyResult) -> None:
    main = table(shown, "main")
    assert value(main, "lpf_paper_best", "nll").sd is not None
    assert value(main, "majority_vote", "nll").sd is not None
    assert value(main, "lpf_robust", "nll").sd is None
    assert value(main, "transformer", "nll").sd is None
    assert value(main, "lpf_robust", "nll").low is not None
    assert "over all 3 seeds of the search" in main.caption
    assert "run in 2 repetitions" in main.caption


@pytest.mark.parametrize(
    ("measure", "printed_as"),
    [
        ("accuracy", "accuracy"),
        ("weighted_f1", "weighted_f1"),
        ("nll", "nll"),
        ("brier_over_k", "brier"),
        ("ece", "ece"),
    ],
)
def test_the_papers_main_table_stands_beside_ours(
    shown: StudyResult, measure: str, printed_as: str
) -> None:
    paper = printed_table("main_results")
    for method in ("lpf_paper_best", "vae_only", "transformer", "edl_individual_broken"):
        printed = paper.value(method, printed_as)
        assert printed is not None
        cell = value(table(shown, "main"), method, measure)
        assert (cell.paper, cell.doubt) == (printed.value, " ".join(printed.doubts) or None)
        assert cell.value is not None
    assert value(table(shown, "main"), "lpf_paper_best", "nll").paper == 0.125
    assert value(table(shown, "main"), "lpf_robust", measure).paper is None
    assert value(table(shown, "large"), "lpf_paper_best", "nll").paper is None


def test_what_the_paper_counts_stands_there_as_a_share(shown: StudyResult) -> None:
    sure = table(shown, "confidence")
    errors = value(sure, "edl_individual_broken", "high_confidence_errors")
    assert errors.paper == pytest.approx(21 / 135)
    assert "none of its errors can be above .8" in (errors.doubt or "")
    assert value(sure, "vae_only", "low_confidence_correct").paper == pytest.approx(4 / 135)
    assert value(sure, "lpf_paper_best", "high_confidence_errors").paper == pytest.approx(1 / 135)
    assert value(sure, "vae_only", "mean_confidence").paper == 0.874


def test_the_papers_throughput_stands_beside_ours(shown: StudyResult) -> None:
    costs = table(shown, "costs")
    assert value(costs, "vae_only", "per_second").paper == 145
    assert value(costs, "vae_only", "runtime_ms").paper == 6.9
    assert value(costs, "vae_only", "runtime_ms").value == 2.0


def test_the_search_stands_beside_the_papers_seed_by_seed(folder: Path) -> None:
    keep_histories(folder)
    seeds = seeds_table(SMALL, ResultReader(folder))
    assert [row.name for row in seeds.rows] == ["42", "1011", "2024"]
    for seed, right, loss in (("42", 0.857, 0.735), ("2024", 0.86, 0.726)):
        accuracy = value(seeds, seed, "validation_accuracy")
        assert (accuracy.value, accuracy.paper) == (ACCURACIES[int(seed)], right)
        assert "No number of right items" in (accuracy.doubt or "")
        found = value(seeds, seed, "validation_loss")
        assert (found.value, found.paper, found.doubt) == (0.75, loss, None)
        assert value(seeds, seed, "validation_kl") == Value(20.0)
        assert value(seeds, seed, "best_epoch") == Value(2.0)
        assert line(seeds, seed).note is None
    assert value(seeds, "1011", "validation_accuracy") == Value(0.85)
    assert "number of epochs" in (line(seeds, "1011").note or "")
    assert "0.8500 ± 0.0100 over all, 0.8600 for the selected one" in seeds.caption


def figure(result: StudyResult, name: str) -> Figure:
    return next(one for one in result.figures if one.name == name)


def test_the_loss_is_drawn_in_its_two_parts(shown: StudyResult) -> None:
    entropy, weighted = figure(shown, "loss_parts").series
    assert entropy.y == (0.55, 0.55, 0.55)
    assert weighted.y == pytest.approx((0.2, 0.2, 0.2))
    assert figure(shown, "seed_variance").series[0].y == tuple(ACCURACIES.values())


def test_references_are_not_drawn_among_the_methods(shown: StudyResult) -> None:
    points = {series.name for series in figure(shown, "accuracy_ece").series}
    assert len(points) == len(RIVALS)  # with ours, without the collapsed one
    assert "EDL-Individual, with its fault" not in points
    assert "collapsed EDL is far outside" in figure(shown, "accuracy_ece").caption
    bars = figure(shown, "error_rates").series[0]
    assert len(bars.x) == len(RIVALS) + 1
    assert not {"Class shares", "Perfect reader", "Oracle"} & {*bars.x, *points}


def test_error_rates_are_what_accuracies_leave(shown: StudyResult) -> None:
    bars = figure(shown, "error_rates").series[0]
    large = table(shown, "large")
    titles = {row.title: row.name for row in large.rows}
    assert list(bars.y) == sorted(bars.y, key=lambda y: y or 0.0)
    for title, error, low, high in zip(bars.x, bars.y, bars.low, bars.high, strict=True):
        right = value(large, titles[str(title)], "accuracy")
        assert None not in (right.value, right.low, right.high)
        assert error == pytest.approx(1.0 - (right.value or 0.0))
        assert (low, high) == pytest.approx((1.0 - (right.high or 0.0), 1.0 - (right.low or 0.0)))


def test_confusions_count_every_entity_once(shown: StudyResult, folder: Path) -> None:
    for name, method in (("confusion", "lpf_robust"), ("confusion_paper", "lpf_paper_best")):
        rows = figure(shown, name).series
        cell = next(
            cell
            for cell in STUDY.cells(SMALL)
            if cell.method == method and cell.eval_spec != EvalSpec()
        )
        answered: Predictions = ResultStore(folder).load(cell)
        right = (answered.answers.argmax(axis=1) == answered.labels).sum()
        assert sum(count or 0 for row in rows for count in row.y) == len(answered.labels)
        assert sum(row.y[place] or 0 for place, row in enumerate(rows)) == right


def test_parts_add_up_to_all(shown: StudyResult) -> None:
    for name in ("by_label", "by_credibility"):
        parts = table(shown, name)
        assert sum(value(parts, row.name, "entities").value or 0 for row in parts.rows) == 60
    assert {row.name for row in table(shown, "by_label").rows} == {"low", "medium", "high"}


def test_findings_mention_a_needed_temperature(shown: StudyResult) -> None:
    """Its answers were raised to the third power before one was fitted."""
    told = sentence(shown, "The paper's best setting")
    before, after = (
        value(table(shown, name), "lpf_paper_best", measure).value or 0.0
        for name, measure in (("more", "raw_ece"), ("large", "ece"))
    )
    assert f"an ECE of {before:.3f} as published and of {after:.3f} once" in told


def exact_result(folder: Path, losses: dict[str, float]) -> StudyResult:
    """Everybody who is not in ``losses`` has .7."""
    keep_histories(folder)
    keep_exact(folder, STUDY.cells(SMALL), lambda cell: losses.get(cell.method, 0.7))
    return STUDY.result(SMALL, ResultReader(folder))


def test_where_nobody_is_better_the_nearest_is_named_with_its_interval(tmp_path: Path) -> None:
    losses = {"lpf_robust": 0.3, "vae_only": 0.35, "perfect_reader": 0.1, "oracle": 0.01}
    result = exact_result(tmp_path, losses)
    assert "the robust ensemble has an NLL of 0.3000, an accuracy of 1.0000" in result.findings[0]
    assert result.findings[0].startswith("On 200 new companies")
    assert result.findings[1] == (
        "No method has a lower NLL; nearest is VAE-Only (factors averaged), 0.0500 above (95 % "
        "interval 0.0500 to 0.0500, corrected p 0.001)."
    )


def test_every_better_rival_is_named_the_best_first(tmp_path: Path) -> None:
    losses = {"lpf_robust": 0.3, "majority_vote": 0.25, "transformer": 0.1, "oracle": 0.01}
    result = exact_result(tmp_path, losses)
    assert result.findings[1] == (
        "A lower NLL than the robust ensemble have: BERT-style (MiniLM's top layer) (by 0.2000, "
        "p 0.001), Majority vote (by 0.0500, p 0.001)."
    )
    against = table(result, "against")
    assert [row.name for row in against.rows[:2]] == ["transformer", "majority_vote"]
    assert value(against, "transformer", "difference").value == pytest.approx(0.2)
    assert {row.name for row in against.rows} == set(RIVALS)


def test_the_ensemble_is_compared_with_every_run(tmp_path: Path) -> None:
    """Its one run stands beside each; the best of another's is not what that one has."""

    def loss(cell: Cell) -> float:
        if cell.method == "lpf_robust":
            return 0.3
        return {(): 0.4, (("member", 0),): 0.35}.get(cell.settings, 0.8)

    keep_histories(tmp_path)
    keep_exact(tmp_path, STUDY.cells(SMALL), loss)
    result = STUDY.result(SMALL, ResultReader(tmp_path))
    mean = value(table(result, "large"), "lpf_paper_best", "nll")
    assert mean.value == pytest.approx((0.35 + 0.8 + 0.8) / 3)
    against = table(result, "against")
    assert value(against, "lpf_paper_best", "difference").value == pytest.approx(0.3 - mean.value)
    assert value(against, "lpf_paper_best", "runs").value == 3
    assert value(against, "majority_vote", "runs").value == len(SMALL.main_repetitions)


@pytest.fixture(scope="module")
def crashed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], StudyResult]:
    """The result where every run of a method crashed."""

    @cache
    def result(method: str) -> StudyResult:
        broken = Skill(error="TrainingError: broke")
        return made_result(
            tmp_path_factory.mktemp("crashed"),
            lambda cell: broken if cell.method == method else ours_is_best(cell),
        )

    return result


@pytest.mark.parametrize("method", ["lpf_robust", "lpf_paper_best", "majority_vote"])
def test_a_crash_is_a_row_with_a_note_and_not_the_end(
    method: str, crashed: Callable[[str], StudyResult]
) -> None:
    result = crashed(method)
    for name in ("main", "large", "confidence", "costs"):
        row = line(table(result, name), method)
        assert "TrainingError: broke" in (row.note or "")
        assert not any(isinstance(cell, Value) and cell.value is not None for cell in row.cells)
    assert_can_be_told(result)


def test_the_papers_number_stands_where_ours_crashed(
    crashed: Callable[[str], StudyResult],
) -> None:
    result = crashed("lpf_paper_best")
    cell = value(table(result, "main"), "lpf_paper_best", "accuracy")
    assert (cell.value, cell.paper) == (None, 0.978)
    assert "confusion_paper" not in {one.name for one in result.figures}
    assert len(result.findings) == 2


def test_without_our_answers_nothing_is_claimed_of_them(
    crashed: Callable[[str], StudyResult],
) -> None:
    result = crashed("lpf_robust")
    assert result.findings[0] == (
        "On 200 new companies the robust ensemble has no answers: every run of it crashed."
    )
    assert len(result.findings) == 2
    assert not {"by_label", "by_credibility"} & {one.name for one in result.tables}
    assert "confusion" not in {one.name for one in result.figures}
    assert all("not compared" in (row.note or "") for row in table(result, "against").rows)


def test_curves_are_of_the_first_run_that_has_answers(tmp_path: Path) -> None:
    broken = Skill(error="TrainingError: broke")
    result = made_result(
        tmp_path,
        lambda cell: broken if cell.settings == (("member", 0),) else ours_is_best(cell),
    )
    assert_can_be_told(result)
    drawn = [series.name for series in figure(result, "reliability").series]
    assert "LPF-SPN, paper's best setting" in drawn
    assert drawn == [series.name for series in figure(result, "risk_coverage").series]
    note = line(table(result, "large"), "lpf_paper_best").note
    assert note == "1 of 3 runs have no answers: TrainingError: broke"


def one_each(methods: tuple[str, ...]) -> Runs:
    return {method: [Cell(main_train_spec(SMALL), EvalSpec(), method)] for method in methods}


def test_bars_stand_shortest_first_and_crashes_have_none(tmp_path: Path) -> None:
    runs = one_each(("lpf_robust", "majority_vote", "vae_only"))
    cells = [cell for found in runs.values() for cell in found]
    signals = {"lpf_robust": 4.0, "majority_vote": 1.0}
    keep_made(
        tmp_path,
        cells,
        lambda cell: (
            Skill(signals[cell.method]) if cell.method in signals else Skill(error="broke")
        ),
    )
    results = ResultReader(tmp_path)
    bars = bar_figure("b", "Bars", "", runs, "nll", "NLL", results).series[0]
    assert bars.x == ("LPF-SPN, robust ensemble", "Majority vote")
    errors = error_figure("e", "", runs, results).series[0]
    assert errors.x == ("LPF-SPN, robust ensemble", "Majority vote")
    broken = bar_figure("b", "Bars", "", {"vae_only": runs["vae_only"]}, "nll", "NLL", results)
    assert with_points([broken]) == []


def test_only_what_has_as_many_runs_is_compared(tmp_path: Path) -> None:
    runs = {**one_each(("lpf_robust", "majority_vote", "prior")), "lpf_paper": []}
    keep_made(tmp_path, [cell for found in runs.values() for cell in found])
    rows = comparison_table("against", "", "lpf_robust", runs, ResultReader(tmp_path)).rows
    assert [row.name for row in rows] == ["majority_vote"]
