"""Where the paper contradicts its own tables or formulas, computed again from its numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean

import pytest

from lpf_paper.printed import Printed, printed_slugs, printed_table
from printed_cells import DOMAINS, agrees, assert_doubted, cell, cells, errors, matrix, number

VALUES = ("low", "medium", "high")


def test_one_setting_in_four_ablations() -> None:
    places = (("n_samples", "16"), ("temperature", "1.0"), ("alpha", "2.0"), ("top_k", "5"))
    widest = 0.0
    for domain in DOMAINS:
        slugs = [(f"ablation_{setting}_{domain}", row) for setting, row in places]
        assert len({number(slug, row, "nll") for slug, row in slugs}) == 4
        accuracies = [number(slug, row, "accuracy") for slug, row in slugs]
        widest = max(widest, max(accuracies) - min(accuracies))
    assert round(widest, 3) == 0.037


def test_main_text_against_appendix() -> None:
    found = set()
    for (slug, row, column), printed in cells():
        detailed = f"{slug}_compliance"
        if slug.startswith("ablation_") and detailed in printed_slugs():
            other = printed_table(detailed).value(row, column)
            if other is not None and not agrees(other.value, printed):
                found.add((slug, row, column))
        if slug.startswith("ablation_") and slug.endswith("_domains"):
            own = cell(slug.replace("domains", row), column, "accuracy")
            if not agrees(own.value, printed):
                found.add((slug, row, column))
    assert len(found) == 13
    assert_doubted(found)


def test_means_over_seeds() -> None:
    found = set()
    for domain in (*DOMAINS, "fever"):
        rows = printed_table(f"training_{domain}").rows.values()
        for column, mean in (
            ("epochs", "mean_epochs"),
            ("converged", "converged_share"),
            ("train_accuracy", "train_accuracy"),
            ("best_validation_accuracy", "validation_accuracy"),
        ):
            values = [row[column] for row in rows]
            printed = cell("training_summary", domain, mean)
            slack = printed.half_step + (values[0].half_step if column.endswith("cy") else 0.0)
            if abs(fmean(value.value for value in values) - printed.value) > slack + 1e-9:
                found.add(("training_summary", domain, mean))
    epochs = {("training_summary", domain, "mean_epochs") for domain in DOMAINS}
    assert found == epochs | {("training_summary", "healthcare", "train_accuracy")}
    assert_doubted(found)


def test_the_mean_over_domains() -> None:
    rows = [row for name, row in printed_table("cross_domain").rows.items() if name != "mean"]
    means = {column: fmean(row[column].value for row in rows) for column in rows[0]}
    off = {
        column
        for column, mean in means.items()
        if not agrees(mean, cell("cross_domain", "mean", column))
    }
    assert off == {"best_baseline", "improvement"}
    assert_doubted({("cross_domain", "mean", column) for column in off})


def product(slug: str, rows: list[str], weight: Callable[[str], float]) -> str:
    """The value that the factors of these rows favour, each to the power of its weight."""
    values = [name for name in VALUES if name in printed_table(slug).columns]
    logs = {
        value: sum(weight(row) * math.log(number(slug, row, value)) for row in rows)
        for value in values
    }
    return max(logs, key=lambda value: logs[value])


@pytest.mark.parametrize(
    ("slug", "weights"), [("error_c0089", "credibility"), ("record_c0089", "weight")]
)
def test_the_shown_error_is_none(slug: str, weights: str) -> None:
    rows = [row for row in printed_table(slug).rows if row != "answer"]
    assert product(slug, rows, lambda row: 1.0) == "high"
    assert product(slug, rows, lambda row: number(slug, row, weights)) == "high"
    assert number(slug, "answer", "medium") > number(slug, "answer", "high")


def test_the_worked_example() -> None:
    assert agrees(1 / (1 + math.exp(0.21)), Printed(0.448, 3))
    assert not agrees(1 / (1 + math.exp(0.21)), cell("worked_first_weight", "calibration", "value"))
    for value in VALUES:
        phi = number("worked_first_factor", value, "phi")
        assert not agrees(phi**0.7, cell("worked_first_factor", value, "power"))
        factors = [number("worked_factors", f"e{i}", value) for i in range(1, 6)]
        right = agrees(math.prod(factors), cell("worked_product", value, "product"))
        assert right == (value == "low")
    weights = [number("worked_weights", f"e{i}", "weight") for i in range(1, 6)]
    assert round(sum(weights), 3) == 1.037


def test_no_weight_reaches_a_half() -> None:
    """It is 1/(1 + s) * 1/(1 + exp(alpha * s)) with s > 0."""
    shown = [
        printed_table(slug).rows for slug in ("worked_factors", "record_c0042", "record_c0089")
    ]
    weights = [row["weight"] for rows in shown for row in rows.values() if "weight" in row]
    sensitivity = printed_table("alpha_sensitivity").rows.values()
    weights += [row[name] for row in sensitivity for name in ("weight_sure", "weight_unsure")]
    assert [weight.value for weight in weights if weight.value < 0.5] == [0.31]
    assert all(bool(weight.doubts) == (weight.value >= 0.5) for weight in weights)


def test_a_record_that_its_own_factors_do_not_give() -> None:
    rows = [row for name, row in printed_table("record_c0042").rows.items() if name != "answer"]
    logs = [sum(row["weight"].value * math.log(row[v].value) for row in rows) for v in VALUES]
    high = 1 / sum(math.exp(log - logs[2]) for log in logs)
    assert round(high, 4) == 0.9995
    answers = [("record_c0042", "answer"), ("worked_answers", "lpf_paper, section 7")]
    first, second = ([number(*place, value) for value in VALUES] for place in answers)
    assert first == second == [0.018, 0.052, 0.930]


def test_the_parts_of_the_loss_make_another_loss() -> None:
    parts = printed_table("loss_parts").rows["compliance"]
    total = parts["cross_entropy"].value + parts["weighted_kl"].value
    assert agrees(total, cell("training_compliance", "2024", "validation_loss"))
    assert not agrees(total, parts["loss"])


def test_the_lowest_loss_is_not_always_given() -> None:
    off = set()
    for domain, row in printed_table("training_losses").rows.items():
        seeds = printed_table(f"training_{domain}").rows.values()
        if min(seed["best_validation_loss"].value for seed in seeds) < (
            row["best_validation_loss"].value
        ):
            off.add(("training_losses", domain, "best_validation_loss"))
    assert {domain for _, domain, _ in off} == {"academic", "legal"}
    assert_doubted(off)


def test_results_are_of_other_seeds_than_the_selected() -> None:
    for domain in (*DOMAINS, "fever"):
        selected = printed_table(f"training_{domain}").selected
        assert selected == number("training_domains", domain, "best_seed")
        if domain != "compliance":
            assert printed_table(f"results_{domain}").seed not in (None, selected)
    assert "77777" not in printed_table("training_healthcare").rows


def test_credibility_s_distribution() -> None:
    least, most = (number("credibility", "evidence", end) for end in ("least", "most"))
    mean = least + (most - least) * 10 / 12
    sd = (most - least) * math.sqrt(10 * 2 / (12**2 * 13))
    assert (round(mean, 3), round(sd, 3)) == (0.925, 0.034)
    spread = number("credibility", "evidence", "sd") / math.sqrt(5)
    assert (number("credibility", "evidence", "mean") - 0.7) / spread > 4.7


def test_fever_s_errors_are_counted_in_three_ways() -> None:
    listed = [row for row in printed_table("errors_fever").rows if " to " in row]
    kinds = sum(number("errors_fever", row, "errors") for row in listed)
    stated = number("errors_fever", "lpf_paper_best", "errors")
    assert (stated, kinds, errors(matrix("confusion_fever_lpf_paper_best"))) == (5, 7, 8)


def test_differences_and_intervals_of_the_best_seed() -> None:
    best = number("main_results", "lpf_paper_best", "accuracy")
    for method, row in printed_table("t_tests").rows.items():
        difference = best - number("main_results", method, "accuracy")
        assert agrees(difference, row["difference"]) == (method != "spn_only")
    for method, row in printed_table("ece_intervals").rows.items():
        same = row["ece"].value == number("main_results", method, "ece")
        assert same == (method != "lpf_paper_best")
    headline = number("main_results", "lpf_paper_best", "ece")
    assert headline < number("ece_intervals", "lpf_paper_best", "low")


def test_costs_are_not_tokens_times_prices() -> None:
    for model, row in printed_table("llm_costs").rows.items():
        dollars = row["input_tokens"].value * row["input_price"].value
        dollars += row["output_tokens"].value * row["output_price"].value
        assert not agrees(dollars / 1e6, row["cost"])
        assert number("llm_comparison", model, "cost") == pytest.approx(10 * row["cost"].value)


def test_bounds_that_bound_nothing() -> None:
    item_ece = number("theory_numbers", "T1 item_ece", "value")
    bound = item_ece + number("theory_numbers", "T1 constant", "value") / math.sqrt(5)
    assert bound > 1 > number("theory_numbers", "T1 bound", "value")
    assert number("bounds", "T5 robustness, half corrupted", "bound") > 2
    lower = number("theory_numbers", "T4 lower_bound", "value")
    assert number("theory_numbers", "T4 lpf_paper_best ece", "value") < lower
