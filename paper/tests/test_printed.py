"""The paper's printed numbers: the file is whole, and says what the paper says."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

from lpf.errors import ConfigError
from lpf_paper.printed import (
    Printed,
    PrintedTable,
    printed_doubts,
    printed_slugs,
    printed_table,
)

TABLES = [printed_table(slug) for slug in printed_slugs()]
SHARES = {
    *("accuracy", "macro_f1", "weighted_f1", "ece", "brier", "error_rate", "coverage", "margin"),
    *("train_accuracy", "train_accuracy_sd", "validation_accuracy", "validation_accuracy_sd"),
    *("best_validation_accuracy", "converged", "converged_share", "mean_confidence", "p"),
    *("confidence_sd", "confidence", "example_confidence", "credibility", "p_high", "posterior"),
    *("mean_weight", "weight", "weight_sure", "weight_unsure", "phi", "factor", "quality"),
    *("consistency", "cross_entropy_share", "weighted_kl_share", "standard_error", "share"),
}

# Copied by hand from the paper's tables, not from the file under test.
COPIED = [
    ("main_results", "lpf_paper_best", "accuracy", 0.978),
    ("main_results", "lpf_learned_published", "macro_f1", 0.905),
    ("main_results", "transformer", "runtime_ms", 134.7),
    ("main_results", "spn_only", "ece", 0.309),
    ("main_results", "edl_individual_broken", "nll", 1.870),
    ("main_results", "relational_graph", "brier", 0.222),
    ("main_results", "llm:kimi-k2-instruct-0905", "ece", 0.805),
    ("main_results", "oracle", "runtime_ms", 0.003),
    ("compliance_comparison", "relational_graph", "runtime_ms", 0.0007),
    ("fever_comparison", "llm:gpt-oss-120b", "accuracy", 0.54),
    ("seed_stats", "ece", "best", 0.008),
    ("seeds_compliance", "54321", "accuracy", 0.9956),
    ("seeds_compliance", "9999", "nll", 0.0178),
    ("confidence", "edl_aggregated", "confidence_sd", 0.296),
    ("runtime", "relational_graph", "throughput", 1_000_000),
    ("cross_domain", "legal", "improvement", -0.007),
    ("cross_domain", "finance", "vae_only", 0.985),
    ("ablation_n_samples", "32", "ece", 0.225),
    ("ablation_temperature", "1.5", "nll", 0.433),
    ("ablation_alpha", "5.0", "mean_weight", 0.367),
    ("ablation_top_k", "3", "gain", 0.126),
    ("ablation_top_k_materials", "20", "macro_f1", 0.9725),
    ("ablation_alpha_healthcare", "2.0", "mean_confidence", 0.7945),
    ("ablation_temperature_legal", "1.2", "brier", 0.0520),
    ("ablation_n_samples_academic", "32", "runtime_ms", 5.8),
    ("ablation_top_k_domains", "construction", "5", 1.0),
    ("ablation_n_samples_domains", "legal", "32", 0.956),
    ("errors_compliance", "relational_graph", "errors", 114),
    ("errors_materials", "relational_graph", "error_rate", 0.763),
    ("confusion_compliance_lpf_learned_published", "high", "medium", 10),
    ("confusion_healthcare_spn_only", "severe", "moderate", 9),
    ("confusion_fever_lpf_paper_best", "high", "high", 895),
    ("errors_by_label", "medium", "error_rate", 0.043),
    ("selective", "0.8", "rejected", 17),
    ("evidence_quality", "below 0.7", "accuracy", 0.913),
    ("error_c0089", "E4", "medium", 0.61),
    ("llm_comparison", "llm:gpt-oss-120b", "cost", 0.006),
    ("llm_answers", "llm:llama-3.3-70b-versatile", "parsed", 49),
    ("llm_costs", "llm:llama-3.3-70b-versatile", "output_price", 0.79),
    ("fever_results", "transformer", "runtime_ms", 142.3),
    ("results_academic", "edl_individual_broken", "nll", 5.936),
    ("results_legal", "lpf_learned_published", "runtime_ms", 44.7),
    ("results_fever", "edl_individual_broken", "ece", 0.001),
    ("compliance_seeds", "314159", "train_accuracy", 0.819),
    ("compliance_seeds", "123", "converged", 0),
    ("training_compliance", "2024", "validation_kl", 4.007),
    ("training_fever", "1011", "epochs", 28),
    ("training_domains", "materials", "validation_accuracy_sd", 0.005),
    ("training_summary", "healthcare", "mean_epochs", 14.7),
    ("latency_parts", "lpf_learned_published", "aggregator_ms", 34.6),
    ("t_tests", "transformer", "p", 0.006),
    ("ece_intervals", "spn_only", "low", 0.284),
    ("training_resources", "decoder", "memory_gb", 6),
    ("search_space", "learning_rate", "default", 2e-4),
    ("best_settings", "compliance", "n_samples", 16),
    ("ece_by_items", "2", "lpf_paper", 0.334),
    ("monte_carlo_error", "64", "bound", 0.193),
    ("monte_carlo_standard_error", "128", "standard_error", 0.044),
    ("theory_numbers", "T4 label_entropy_bits", "value", 1.399),
    ("theory_numbers", "T6 fit_floor", "value", 0.120),
    ("uncertainty_parts", "lpf_learned_published", "epistemic", 0.088),
]


@pytest.mark.parametrize(("slug", "row", "column", "expected"), COPIED)
def test_numbers_are_the_papers(slug: str, row: str, column: str, expected: float) -> None:
    printed = printed_table(slug).value(row, column)
    assert printed is not None
    assert printed.value == expected


def test_shares_are_shares() -> None:
    beyond = [
        (table.slug, row, column)
        for table in TABLES
        for row, cells in table.rows.items()
        for column, printed in cells.items()
        if is_share(table, column) and not 0.0 <= printed.value <= 1.0
    ]
    assert not beyond


def is_share(table: PrintedTable, column: str) -> bool:
    return column in SHARES or (table.measure is not None and column != "improvement")


def test_tables_are_whole() -> None:
    for table in TABLES:
        held = {column for cells in table.rows.values() for column in cells}
        assert held == set(table.columns), table.slug
        assert table.section, table.slug
        assert table.label.startswith(("tab:", "line")), table.slug
        assert table.about.endswith("."), table.slug
        assert ("brier" in held) <= (table.brier_divided_by == 3), table.slug
        assert set(table.entities_by_row) <= set(table.rows), table.slug
        assert all(
            math.isfinite(cell.value) for row in table.rows.values() for cell in row.values()
        )


def test_every_doubt_points_at_something() -> None:
    for doubt in printed_doubts():
        tables = [printed_table(slug) for slug in doubt.tables]
        for row in doubt.rows:
            assert any(row in table.rows for table in tables), (row, doubt)
        for column in doubt.columns:
            assert any(column in table.columns for table in tables), (column, doubt)
        for table in tables:
            doubted = [
                d for row in table.rows.values() for cell in row.values() for d in cell.doubts
            ]
            assert doubt.why in doubted, (table.slug, doubt)
        assert doubt.why.endswith(".")


def test_digits_are_kept_as_printed() -> None:
    share = printed_table("compliance_seeds").value("2024", "best_validation_accuracy")
    assert share is not None
    assert (share.value, share.decimals, share.half_step) == (0.86, 3, 0.0005)
    assert printed_table("errors_compliance").value("transformer", "errors") == Printed(4.0, 0)
    assert printed_table("search_space").value("alpha", "default") == Printed(2.0, 1)


def test_a_doubt_reaches_its_own_cells_alone() -> None:
    table = printed_table("evidence_quality")
    doubted = {
        (row, column)
        for row, cells in table.rows.items()
        for column, printed in cells.items()
        if printed.doubts
    }
    accuracies = {("above 0.9", "accuracy"), ("0.7 to 0.9", "accuracy")}
    assert doubted == accuracies | {("below 0.7", "entities")}


def test_what_is_not_printed_is_none() -> None:
    table = printed_table("main_results")
    assert table.value("llm:qwen3-32b", "nll") is None
    assert table.value("lpf_robust", "accuracy") is None
    assert table.value("oracle", "coverage") is None
    assert (table.entities_of("oracle"), table.entities_of("llm:qwen3-32b")) == (135, 50)
    assert printed_table("confidence").entities_of("vae_only") is None


def test_an_unknown_table_is_refused_with_those_there_are() -> None:
    with pytest.raises(ConfigError, match=r"'headline'.*'main_results'"):
        printed_table("headline")


def test_nothing_is_read_before_it_is_asked_for() -> None:
    program = (
        "import lpf_paper.printed as p; print(p._document.cache_info().currsize);"
        "p.printed_slugs(); p.printed_table('runtime'); print(p._document.cache_info().misses)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == ["0", "1"], done.stderr
