"""Scores of the paper that no set of answers can have had, computed again from its numbers."""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import fmean

from lpf_paper.printed import Printed, printed_slugs, printed_table
from printed_cells import DOMAINS, agrees, assert_doubted, cell, cells, errors, matrix, number

TEST, ITEMS = 135, 675
BROKEN = ("edl_aggregated", "edl_individual_broken", "relational_graph")
Counts = tuple[int, int, int]


def is_share_of(printed: Printed, size: int) -> bool:
    return any(agrees(right / size, printed) for right in range(size + 1))


def size_behind(slug: str, row: str, column: str) -> int | None:
    """Of how many test entities this cell is a share; None where it is no such share."""
    table = printed_table(slug)
    by_column = table.measure == "accuracy" and column != "improvement" and row != "mean"
    if not by_column and column not in ("accuracy", "error_rate"):
        return None
    if slug in ("evidence_quality", "errors_by_label"):
        return round(number(slug, row, "entities"))
    if slug == "selective":
        return TEST - round(number(slug, row, "rejected"))
    return table.entities_of(row)


def test_accuracies_that_no_number_of_right_answers_gives() -> None:
    found = set()
    for place, printed in cells():
        size = size_behind(*place)
        if size is not None and not is_share_of(printed, size):
            found.add(place)
    seeds = {
        ("seeds_compliance", seed, "accuracy") for seed in printed_table("seeds_compliance").rows
    }
    failed = {
        (slug, f"llm:{model}", "accuracy")
        for slug in ("main_results", "llm_comparison", "llm_answers")
        for model in ("llama-3.3-70b-versatile", "gpt-oss-120b")
    }
    assert found == seeds | failed | {
        ("compliance_comparison", "llm:llama-3.3-70b-versatile", "accuracy"),
        ("compliance_comparison", "edl_aggregated", "accuracy"),
        ("evidence_quality", "above 0.9", "accuracy"),
        ("evidence_quality", "0.7 to 0.9", "accuracy"),
    }
    assert_doubted(found)
    assert all(is_share_of(cell(*place), 1800) for place in seeds)
    assert all(is_share_of(cell(*place), 49) for place in failed)


def test_validation_accuracies_that_no_number_of_right_items_gives() -> None:
    tables = ("compliance_seeds", *(f"training_{domain}" for domain in DOMAINS))
    columns = ("validation_accuracy", "best_validation_accuracy")
    found = {
        place
        for place, printed in cells()
        if place[0] in tables and place[2] in columns and not is_share_of(printed, ITEMS)
    }
    assert found == {
        place
        for place, printed in cells()
        if any(doubt.startswith("No number of right items") for doubt in printed.doubts)
    }
    assert len(found) == 31


def test_ece_beyond_what_three_values_allow() -> None:
    """Confidence is at least 1/3, so a right answer adds at most 2/3 to ECE and a wrong one 1."""
    found = set()
    for (slug, row, column), printed in cells():
        accuracy = printed_table(slug).value(row, "accuracy")
        if column == "ece" and accuracy is not None:
            most = 1 - (accuracy.value - accuracy.half_step) / 3
            if printed.value - printed.half_step > most:
                found.add((slug, row, column))
    assert len(found) == 15
    assert {row[:4] for _, row, _ in found} == {"llm:"}
    assert_doubted(found)


def test_mean_confidence_above_what_the_thresholds_allow() -> None:
    rejected = [round(number("selective", f"0.{i}", "rejected")) for i in (5, 6, 7, 8, 9)]
    below = [later - earlier for earlier, later in zip([0, *rejected], rejected, strict=False)]
    most = sum(n * top for n, top in zip(below, (0.5, 0.6, 0.7, 0.8, 0.9), strict=True))
    most = (most + TEST - rejected[-1]) / TEST
    assert round(most, 3) == 0.954
    assert number("confidence", "lpf_paper_best", "mean_confidence") == 0.975
    assert_doubted({("confidence", "lpf_paper_best", "mean_confidence")})


def test_broken_baselines_are_constant_predictors() -> None:
    tables = {f"results_{domain}": TEST for domain in DOMAINS if domain != "compliance"}
    for slug, size in (tables | {"results_fever": 1800, "fever_results": 1800}).items():
        for method in BROKEN:
            assert is_constant(slug, method, size), (slug, method)
            assert_doubted({(slug, method, "accuracy"), (slug, method, "macro_f1")})
    assert [is_constant("main_results", method, TEST) for method in BROKEN] == [False, True, True]


def is_constant(slug: str, method: str, size: int) -> bool:
    """Macro-F1 of giving one value of three to all: that value's F1 is 2p/(1 + p), two are 0."""
    share = round(number(slug, method, "accuracy") * size) / size
    return agrees(2 * share / (1 + share) / 3, cell(slug, method, "macro_f1"))


def test_the_graph_network_is_uniform_and_has_no_high_confidence() -> None:
    row = ("main_results", "relational_graph")
    assert agrees(math.log(3), cell(*row, "nll"))
    assert agrees((2 / 3) / 3, cell(*row, "brier"))
    assert agrees(1 / 3 - 21 / TEST, cell(*row, "ece"))
    assert number("errors_compliance", "relational_graph", "high_confidence_errors") == 38
    assert number("confidence", "edl_individual_broken", "confidence_sd") == 0.0
    assert number("confidence", "edl_individual_broken", "high_confidence_errors") == 21


def f1_scores(rows: list[list[int]]) -> tuple[float, float]:
    """Macro and weighted F1 of a matrix of counts."""
    columns = [sum(column) for column in zip(*rows, strict=True)]
    own = [2 * row[i] / (sum(row) + columns[i]) for i, row in enumerate(rows)]
    total = sum(columns)
    return fmean(own), sum(f * sum(row) for f, row in zip(own, rows, strict=True)) / total


def claimed(domain: str, method: str, column: str) -> Printed:
    return cell("main_results" if domain == "compliance" else f"results_{domain}", method, column)


def test_confusion_matrices_that_disagree_with_the_rest() -> None:
    wrong = set()
    for slug in printed_slugs():
        table = printed_table(slug)
        if table.method is None or table.domain is None:
            continue
        rows = matrix(slug)
        stated = number(f"errors_{table.domain}", table.method, "errors")
        macro = claimed(table.domain, table.method, "macro_f1")
        sums_up = sum(map(sum, rows)) == table.entities and errors(rows) == stated
        if not (sums_up and agrees(f1_scores(rows)[0], macro)):
            wrong.add(slug.removeprefix("confusion_"))
            assert all(c.doubts for held in table.rows.values() for c in held.values()), slug
    of: dict[str, tuple[str, ...]] = {
        "compliance": ("lpf_paper_best", "lpf_learned_published", "vae_only", "transformer")
    }
    of["materials"] = ("lpf_paper_best", "lpf_learned_published", "spn_only")
    expected = {f"{domain}_{method}" for domain, methods in of.items() for method in methods}
    assert wrong == expected | {"compliance_edl_aggregated", "fever_lpf_paper_best"}


def test_a_matrix_that_gives_all_scores_of_edl_aggregated() -> None:
    macro, weighted = f1_scores([[21, 0, 0], [74, 0, 2], [1, 0, 37]])
    assert agrees(58 / TEST, claimed("compliance", "edl_aggregated", "accuracy"))
    assert agrees(macro, claimed("compliance", "edl_aggregated", "macro_f1"))
    assert agrees(weighted, claimed("compliance", "edl_aggregated", "weighted_f1"))


@lru_cache
def splits(total: int, parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return ((total,),)
    return tuple(
        (first, *rest) for first in range(total + 1) for rest in splits(total - first, parts - 1)
    )


def can_come_from(labels: Counts, wrong: int, macro: Printed, weighted: Printed) -> bool:
    """Whether any confusion matrix with these row sums and errors has these F1 scores."""
    low, medium, high = labels
    for lm, lh, ml, mh, hl, hm in splits(wrong, 6):
        right = (low - lm - lh, medium - ml - mh, high - hl - hm)
        if min(right) < 0:
            continue
        rows = [[right[0], lm, lh], [ml, right[1], mh], [hl, hm, right[2]]]
        if all(map(agrees, f1_scores(rows), (macro, weighted))):
            return True
    return False


def bare(printed: Printed) -> Printed:
    """Without its doubts, so that equal numbers are equal."""
    return Printed(printed.value, printed.decimals)


def few_errors() -> list[tuple[int, Printed, Printed]]:
    """Errors and both F1 of the settings of compliance's ablations with at most five errors."""
    found = set()
    for setting in ("n_samples", "temperature", "alpha", "top_k"):
        for row in printed_table(f"ablation_{setting}_compliance").rows.values():
            wrong = TEST - round(row["accuracy"].value * TEST)
            if wrong <= 5:
                found.add((wrong, bare(row["macro_f1"]), bare(row["weighted_f1"])))
    return sorted(found, key=lambda case: case[0])


def test_only_one_set_of_labels_gives_compliance_s_f1_scores() -> None:
    """It is 21, 38 and 76 in some order, where the printed matrices have 27, 38 and 70."""
    cases = few_errors()
    assert len(cases) == 10
    assert all(can_come_from((21, 76, 38), *case) for case in cases)
    triples = [(a, b, TEST - a - b) for a in range(1, 46) for b in range(a, (TEST - a) // 2 + 1)]
    fitting = [labels for labels in triples if all(can_come_from(labels, *case) for case in cases)]
    assert fitting == [(21, 38, 76)]


def test_fever_s_constant_predictors_need_other_labels_than_its_matrix() -> None:
    labels = [sum(row) for row in matrix("confusion_fever_lpf_paper_best")]
    assert labels == [413, 488, 899]
    for method in ("edl_individual_broken", "relational_graph"):
        accuracy = cell("results_fever", method, "accuracy")
        assert not any(agrees(label / 1800, accuracy) for label in labels)
