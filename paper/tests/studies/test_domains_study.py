from __future__ import annotations

from collections import Counter
from dataclasses import replace
from math import log
from pathlib import Path

import pytest
from made_answers import Skill, keep_made
from study_checks import assert_can_be_shown, keep_exact, line, sentence, table, value

from lpf.evaluation.specs import Cell, DomainData
from lpf_paper.exhibits import StudyResult
from lpf_paper.plan import ExperimentPlan, full_plan, quick_plan
from lpf_paper.printed import printed_table
from lpf_paper.studies.domains import DomainsStudy
from lpf_paper.studies.domains_tables import GAP, closed
from lpf_paper.studies.study import ResultReader

QUICK, FULL = quick_plan(), full_plan()
METHODS = (
    "lpf_robust",
    "lpf_paper",
    "lpf_paper_best",
    "vae_only",
    "vae_only_ensemble",
    "logistic_mean",
    "majority_vote",
    "dawid_skene",
    "prior",
    "perfect_reader",
)
SMALL = replace(QUICK, domain_methods=METHODS)
# Two data sets a domain and methods that are run on the first only, as in the full plan.
WIDE = replace(SMALL, data_seeds=(1, 2), slow_methods=("stacking", "deep_sets"))
PAPER, HARD = DomainsStudy("paper"), DomainsStudy("hard")
FIVE, VARYING = "with five items an entity", "with one to five items"
ITS_ECE = "Its ECE differs beyond chance from that of a perfectly calibrated predictor in"


def domain_of(cell: Cell) -> str:
    assert isinstance(cell.train_spec.data, DomainData)
    return cell.train_spec.data.domain


@pytest.mark.parametrize("plan", [QUICK, FULL], ids=["quick", "full"])
@pytest.mark.parametrize("study", [PAPER, HARD], ids=["paper", "hard"])
def test_every_method_is_asked_everywhere_and_nothing_twice(
    study: DomainsStudy, plan: ExperimentPlan
) -> None:
    cells = study.cells(plan)
    assert len(set(cells)) == len(cells)
    seeds = plan.data_seeds if study is PAPER else plan.hard_seeds
    # The paper's own table is of the data sets' own entities; nobody else's is.
    eval_specs = 3 if study is PAPER else 2
    core = len(plan.domain_methods) * eval_specs * len(plan.domains) * len(seeds)
    assert len(cells) == core + len(plan.slow_methods) * len(plan.domains)
    assert len({cell.train_spec for cell in cells}) == len(plan.domains) * len(seeds)
    assert {cell.train_spec.seeds for cell in cells} == {plan.training_seeds}


@pytest.mark.parametrize("study", [PAPER, HARD], ids=["paper", "hard"])
def test_far_methods_are_run_on_the_first_data_set_of_each_domain(study: DomainsStudy) -> None:
    far = [cell for cell in study.cells(FULL) if cell.method in FULL.slow_methods]
    assert {cell.train_spec.seed for cell in far} == {1}
    counts = Counter((cell.method, domain_of(cell)) for cell in far)
    assert set(counts.values()) == {1}
    assert len(counts) == len(FULL.slow_methods) * len(FULL.domains)


def test_networks_of_one_preset_never_answer_about_the_other() -> None:
    for study in (PAPER, HARD):
        for cell in study.cells(FULL):
            assert isinstance(cell.train_spec.data, DomainData)
            assert cell.train_spec.data.preset == study.preset
            asked = cell.eval_spec.data or cell.train_spec.data
            assert (asked.domain, asked.preset) == (domain_of(cell), study.preset)


def ours_is_best(cell: Cell) -> Skill:
    signals = {"lpf_robust": 3.0, "perfect_reader": 6.0, "lpf_paper": 1.0}
    return Skill(signal=signals.get(cell.method, 2.0))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> StudyResult:
    folder = tmp_path_factory.mktemp("domains")
    keep_made(folder, PAPER.cells(WIDE), ours_is_best)
    return PAPER.result(WIDE, ResultReader(folder))


def test_everything_can_be_shown(shown: StudyResult) -> None:
    assert_can_be_shown(shown)
    assert [one.name.removeprefix("domains_paper_") for one in shown.tables] == [
        "fixed",
        "varying",
        "against",
        "against_varying",
        "nll",
        "gap",
        "cross_domain",
        "far",
    ]


def test_rows_stand_by_their_nll_and_references_last(shown: StudyResult) -> None:
    for name in ("domains_paper_fixed", "domains_paper_varying", "domains_paper_nll"):
        rows = table(shown, name).rows
        assert len(rows) == len(WIDE.domain_methods)
        assert rows[0].name == "lpf_robust"
        assert rows[-3].name == "lpf_paper"
        assert [row.name for row in rows[-2:]] == ["perfect_reader", "prior"]


def test_far_methods_have_one_run_per_domain_beside_others(shown: StudyResult) -> None:
    far = table(shown, "domains_paper_far")
    assert {row.name for row in far.rows} > {*WIDE.slow_methods, "lpf_robust", "perfect_reader"}
    assert far.caption.startswith("2 runs per method")
    assert line(far, "stacking").note is None


def test_the_papers_accuracies_stand_beside_ours(shown: StudyResult) -> None:
    cross, paper = table(shown, "cross_domain"), printed_table("cross_domain")
    for domain in WIDE.domains:
        for method in ("lpf_paper_best", "vae_only"):
            printed = paper.value(domain, method)
            assert printed is not None
            cell = value(cross, domain, method)
            assert cell.paper == printed.value
            assert cell.value is not None
            assert cell.sd is not None
        assert value(cross, domain, "lpf_robust").paper is None
    assert value(cross, "compliance", "lpf_paper_best").paper == 0.978


def test_the_papers_learned_numbers_stand_beside_the_published_form(tmp_path: Path) -> None:
    """Of the repaired one it prints none. What was run of the other was asked elsewhere."""
    plan = replace(
        SMALL,
        domain_methods=(*METHODS, "lpf_learned"),
        slow_methods=("lpf_learned_published",),
        data_seeds=(1, 2),
    )
    keep_exact(
        tmp_path, PAPER.cells(plan), lambda cell: 0.2 if cell.method in plan.slow_methods else 0.5
    )
    cross = table(PAPER.result(plan, ResultReader(tmp_path)), "cross_domain")
    for domain, printed in (("compliance", 0.911), ("healthcare", 0.978)):
        published = value(cross, domain, "lpf_learned_published")
        assert (published.value, published.paper, published.sd) == (1.0, printed, None)
        assert value(cross, domain, "lpf_learned").paper is None
        assert value(cross, domain, "lpf_learned").sd == 0.0
    assert "as published, was run on the first data set" in cross.caption
    assert "tested on 500 new entities" in cross.caption
    assert cross.columns[-1].title == "LPF-Learned, as published, on new entities"


def test_the_papers_learned_numbers_stand_alone_where_it_was_not_run(shown: StudyResult) -> None:
    cross = table(shown, "cross_domain")
    published = value(cross, "compliance", "lpf_learned_published")
    assert (published.value, published.paper) == (None, 0.911)
    assert "as published, was not run here" in cross.caption


def test_the_hard_preset_has_no_table_of_the_papers(tmp_path: Path) -> None:
    keep_made(tmp_path, HARD.cells(SMALL))
    result = HARD.result(SMALL, ResultReader(tmp_path))
    assert_can_be_shown(result)
    assert "cross_domain" not in {one.name for one in result.tables}
    assert all(one.name.startswith("domains_hard_") for one in result.tables)
    assert "with 1 data set of 630" in result.tables[0].caption
    assert sentence(result, "On the preset hard, with five items an entity,")


LOSSES = {
    "compliance": {"lpf_robust": 0.4, "lpf_paper": 0.6, "perfect_reader": 0.2},
    "healthcare": {"lpf_robust": 0.3, "lpf_paper": 0.7, "perfect_reader": 0.2},
}


def exact(cell: Cell) -> float:
    """By domain; all other methods are halfway between ours and the paper's."""
    losses = LOSSES[domain_of(cell)]
    return losses.get(cell.method, (losses["lpf_robust"] + losses["lpf_paper"]) / 2)


def exact_result(folder: Path, better: dict[str, float] | None = None) -> StudyResult:
    """``better`` are losses of methods that differ from the rest."""
    changed = better or {}
    keep_exact(
        folder,
        PAPER.cells(SMALL),
        lambda cell: changed.get(cell.method, exact(cell)),
    )
    return PAPER.result(SMALL, ResultReader(folder))


def test_the_gap_is_closed_as_far_as_by_hand(tmp_path: Path) -> None:
    result = exact_result(tmp_path)
    gap = table(result, "domains_paper_gap")
    for domain, share in (("compliance", 0.5), ("healthcare", 0.8)):
        assert value(gap, domain, "nll").value == pytest.approx(LOSSES[domain]["lpf_robust"])
        assert value(gap, domain, "paper").value == pytest.approx(LOSSES[domain]["lpf_paper"])
        assert value(gap, domain, "perfect").value == pytest.approx(0.2)
        assert value(gap, domain, "closed").value == pytest.approx(share)
    # Over both: (.65 - .35) / (.65 - .2).
    assert "closes 67% of the gap" in sentence(result, "The ensemble closes")
    assert "by domain 50% to 80%." in sentence(result, "The ensemble closes")


@pytest.mark.parametrize(
    ("losses", "share"),
    [
        ((0.5, 0.5, 0.1), 0.0),
        ((0.1, 0.5, 0.1), 1.0),
        ((0.6, 0.5, 0.1), -0.25),
        ((0.3, 0.2, 0.2), None),  # no way to go
        ((0.3, 0.1, 0.2), None),
        ((None, 0.5, 0.1), None),
        ((0.3, None, 0.1), None),
        ((0.3, 0.5, None), None),
    ],
)
def test_a_gap_that_is_none_is_not_closed(
    losses: tuple[float | None, float | None, float | None], share: float | None
) -> None:
    assert closed(*losses) == pytest.approx(share)


def test_where_nobody_is_better_the_nearest_is_named_with_its_interval(tmp_path: Path) -> None:
    result = exact_result(tmp_path, {"dawid_skene": 0.41})
    for where in (FIVE, VARYING):
        assert sentence(result, f"On the preset paper, {where}").endswith(
            "an NLL of 0.3500; the next method, Dawid-Skene, is 0.0600 above "
            "(95 % interval 0.0100 to 0.1100)."
        )


def test_a_better_rival_is_named_as_better(tmp_path: Path) -> None:
    result = exact_result(tmp_path, {"majority_vote": 0.25})
    for where in (FIVE, VARYING):
        assert sentence(result, f"On the preset paper, {where}").endswith(
            "the next method, Majority vote, is 0.1000 below: it is better "
            "(95 % interval -0.1500 to -0.0500)."
        )
    against = table(result, "domains_paper_against")
    assert against.rows[0].name == "majority_vote"
    assert value(against, "majority_vote", "difference").value == pytest.approx(0.1)


def test_a_rival_that_is_better_by_chance_only_is_not_called_better(tmp_path: Path) -> None:
    result = exact_result(tmp_path, {"majority_vote": 0.34})
    assert sentence(result, f"On the preset paper, {FIVE}").endswith(
        "the next method, Majority vote, is 0.0100 below, which may be chance "
        "(95 % interval -0.0600 to 0.0400)."
    )


def test_references_are_never_called_the_next_method(tmp_path: Path) -> None:
    result = exact_result(tmp_path, {"prior": 0.01, "perfect_reader": 0.01})
    assert {row.name for row in table(result, "domains_paper_against").rows} == {
        method
        for method in SMALL.domain_methods
        if method not in ("lpf_robust", "prior", "perfect_reader")
    }
    assert "above" in sentence(result, f"On the preset paper, {FIVE}")


def test_miscalibration_is_counted_in_data_sets(tmp_path: Path) -> None:
    """Always right at a confidence of e^-.4 is far from calibrated; always right and all but sure
    is not."""
    assert f"{ITS_ECE} 2 of 2" in sentence(exact_result(tmp_path / "unsure"), ITS_ECE)
    sure = exact_result(tmp_path / "sure", {"lpf_robust": -log(0.9999)})
    assert f"{ITS_ECE} 0 of 2" in sentence(sure, ITS_ECE)


def crashed_result(folder: Path, method: str, domains: tuple[str, ...]) -> StudyResult:
    def skill(cell: Cell) -> Skill:
        broken = cell.method == method and domain_of(cell) in domains
        return replace(ours_is_best(cell), error="TrainingError: broke" if broken else None)

    keep_made(folder, PAPER.cells(SMALL), skill)
    return PAPER.result(SMALL, ResultReader(folder))


@pytest.mark.parametrize("method", [*GAP, "majority_vote"])
def test_a_crash_is_a_row_with_a_note_and_not_the_end(method: str, tmp_path: Path) -> None:
    result = crashed_result(tmp_path, method, SMALL.domains)
    for name in ("domains_paper_fixed", "domains_paper_varying", "domains_paper_nll"):
        shown = table(result, name)
        assert len(shown.rows) == len(SMALL.domain_methods)
        assert "TrainingError: broke" in (line(shown, method).note or "")
        assert set(line(shown, method).cells) == {None}
    assert_can_be_shown(result)


def test_without_our_answers_nothing_is_claimed_of_them(tmp_path: Path) -> None:
    result = crashed_result(tmp_path, "lpf_robust", SMALL.domains)
    assert len(result.findings) == 2
    assert all("has no NLL that can be compared" in one for one in result.findings)
    gap = line(table(result, "domains_paper_gap"), "compliance")
    assert [cell is None for cell in gap.cells] == [True, True, False, False, True, True, True]
    assert "LPF-SPN, robust ensemble: 1 of 1 runs have no answers" in (gap.note or "")


def test_a_method_that_lacks_a_domain_is_not_ranked_by_the_others(tmp_path: Path) -> None:
    result = crashed_result(tmp_path, "lpf_robust", ("healthcare",))
    rows = table(result, "domains_paper_nll").rows
    assert [row.name for row in rows[-3:]] == ["lpf_robust", "perfect_reader", "prior"]
    assert rows[-3].note == "healthcare: 1 of 1 runs have no answers: TrainingError: broke"
    assert not any(one.startswith("The ensemble closes") for one in result.findings)
    assert "of 1 data sets" in sentence(result, ITS_ECE)
    cross = table(result, "cross_domain")
    assert value(cross, "healthcare", "lpf_robust").value is None
    assert value(cross, "compliance", "lpf_robust").value is not None


def test_the_papers_number_stands_where_ours_crashed(tmp_path: Path) -> None:
    result = crashed_result(tmp_path, "vae_only", SMALL.domains)
    cell = value(table(result, "cross_domain"), "compliance", "vae_only")
    assert (cell.value, cell.paper) == (None, 0.956)
