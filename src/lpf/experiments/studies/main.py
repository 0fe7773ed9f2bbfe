"""Compliance, all methods: the paper's main, seed, confidence, runtime and error tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf.experiments.measures import Part, by_credibility, by_label
from lpf.experiments.naming import title_of
from lpf.experiments.plan import Plan
from lpf.experiments.printed import printed_table
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.figures import (
    answers_of,
    bar_figure,
    confusion_figure,
    error_figure,
    reliability_figure,
    risk_figure,
    scatter_figure,
    with_points,
)
from lpf.experiments.studies.tables import (
    comparison_table,
    comparisons,
    method_table,
    printed_value,
)
from lpf.training.history import SeedHistory, spread

DOMAIN = "compliance"
TEST_SEED = 1000  # of the large test set, apart from those of data sets
# One network at a time: a run of these is one seed of the search.
BY_SEED = (
    "lpf_robust_single",
    "lpf_paper",
    "lpf_paper_best",
    "lpf_learned_published",
    "vae_only",
)
# Nothing in these depends on the seed that repetitions change.
ONCE = ("lpf_robust", "lpf_learned", "vae_only_ensemble", "prior", "perfect_reader", "oracle")
COLLAPSED = "edl_individual_broken"
SLOW = ("transformer",)  # minutes a run
SHOWN = (
    "lpf_robust",
    "lpf_paper_best",
    "lpf_learned",
    "vae_only_ensemble",
    "deterministic_ensemble_average",
    "majority_vote",
)
PAPER_MEASURES = ("accuracy", "macro_f1", "nll", "brier_over_k", "ece", "runtime_ms")
OWN_MEASURES = (
    "nll",
    "accuracy",
    "macro_f1",
    "brier",
    "ece",
    "ece_null",
    "ece_p",
    "ece_mass",
    "classwise_ece",
    "mce",
    "aurc",
    "raw_nll",
    "raw_ece",
)
CONFIDENCE_MEASURES = (
    "mean_confidence",
    "confidence_sd",
    "high_confidence_errors",
    "low_confidence_correct",
)
COST_MEASURES = ("runtime_ms", "per_second", "fit_seconds", "stored_bytes", "peak_bytes")


@dataclass(frozen=True)
class MainStudy:
    name: str = "compliance"

    def cells(self, plan: Plan) -> list[Cell]:
        exams = (Exam(), large_exam(plan))
        return [cell for exam in exams for cells in runs(plan, exam).values() for cell in cells]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        small, large = runs(plan, Exam()), runs(plan, large_exam(plan))
        shown = {method: large[method] for method in SHOWN if method in large}
        return StudyResult(
            self.name,
            "Compliance: every method on the same companies",
            "How good, how sure and how fast is each method, and does the paper's table come out?",
            tuple(_findings(plan, large, book)),
            (*_tables(plan, small, large, book), *_parts_tables(large, book)),
            (*_training_figures(plan, book), *_answer_figures(plan, large, shown, book)),
        )


def lesson(plan: Plan, repetition: int = 1) -> Lesson:
    return Lesson(DomainData(DOMAIN), seed=repetition, seeds=plan.main_seeds)


def large_exam(plan: Plan) -> Exam:
    return Exam(DomainData(DOMAIN, seed=TEST_SEED), entities=plan.asked)


def runs(plan: Plan, exam: Exam) -> dict[str, list[Cell]]:
    """The cells of each method: one a seed of the search, one a repetition, or one."""
    return {method: _runs(plan, exam, method) for method in plan.methods}


def _runs(plan: Plan, exam: Exam, method: str) -> list[Cell]:
    if method in BY_SEED:
        members = range(len(plan.main_seeds))
        return [Cell(lesson(plan), exam, method, (("member", place),)) for place in members]
    repeated = plan.main_repetitions[:1] if method in ONCE else plan.main_repetitions
    if method in SLOW:
        repeated = repeated[:1]
    return [Cell(lesson(plan, repetition), exam, method) for repetition in repeated]


def _tables(
    plan: Plan, small: Mapping[str, list[Cell]], large: Mapping[str, list[Cell]], book: Book
) -> list[Table]:
    seeds = f"{len(plan.main_seeds)} seeds of the search"
    count = len(plan.main_repetitions)
    repeats = "1 repetition" if count == 1 else f"{count} repetitions"
    how = (
        f"LPF and VAE-Only with one network: mean and sd over all {seeds}, the worst among them; "
        "their ensembles: the best five of these, one run. What stands on the classifier has the "
        f"best of as many networks, and like all else that draws is run in {repeats}. All methods "
        "but references at a temperature fitted on the same 135 validation companies, robust mode "
        "at its own."
    )
    return [
        method_table(
            "main",
            "The paper's test: 135 companies",
            f"{how} One error is .0074 of accuracy here. Queries without reading the texts, "
            "except for the transformer, which is nothing but that.",
            small,
            PAPER_MEASURES,
            book,
            "main_results",
        ),
        method_table(
            "large",
            f"The same on {plan.asked:,} new companies in unseen wordings",
            f"{how} 'ECE if perfect' is what a perfectly calibrated predictor with the same "
            "confidences would show on so many companies, p(perfect) how often it would show more "
            "(mean over runs).",
            large,
            OWN_MEASURES,
            book,
        ),
        _compared(large, book),
        seeds_table(plan, book),
        method_table(
            "confidence",
            "How sure they sound",
            "Shares of all companies; high is above .8. " + how,
            small,
            CONFIDENCE_MEASURES,
            book,
            "confidence",
        ),
        method_table(
            "costs",
            "What they cost",
            "One query is the median of single companies asked alone, without reading their texts; "
            "queries a second are all asked at once, on one core. Training includes networks that "
            "a method shares with others. Memory is that of Python and NumPy.",
            small,
            COST_MEASURES,
            book,
            "runtime",
        ),
    ]


def _compared(large: Mapping[str, list[Cell]], book: Book) -> Table:
    """The ensemble has one run; so others are compared by their first."""
    first = {method: cells[:1] for method, cells in large.items()}
    return comparison_table(
        "against",
        "Paired on the same companies, first run of each; below 0 the ensemble is better. "
        "Intervals of 95 % over companies, p-values corrected for the number of methods.",
        "lpf_robust",
        first,
        book,
    )


def seeds_table(plan: Plan, book: Book) -> Table:
    """What the search printed, seed by seed, beside the paper's."""
    beside = printed_table("compliance_seeds")
    columns = (
        Column("validation_accuracy", "Items right", "share", "higher", 4),
        Column("validation_loss", "Validation loss", "number", "lower", 4),
        Column("validation_cross_entropy", "Cross-entropy", "number", "lower", 4),
        Column("validation_kl", "KL", "number", None, 2),
        Column("best_epoch", "Best epoch", "count", None, 0),
    )
    histories = book.shelf.kept(lesson(plan)).histories
    rows = []
    for history in histories:
        cells = []
        for column in columns:
            paper, doubt = printed_value(beside, str(history.seed), column.name)
            cells.append(Value(_of(history, column.name), paper=paper, doubt=doubt))
        note = None if history.converged else "stopped by the number of epochs, not by patience"
        rows.append(Row(str(history.seed), f"Seed {history.seed}", tuple(cells), "rival", note))
    accuracy = spread(histories, "validation_accuracy")
    return Table(
        "seeds",
        "The search, seed by seed",
        f"Single items of validation companies; {accuracy.mean:.4f} ± {accuracy.sd:.4f} over "
        f"all, {accuracy.selected:.4f} for the selected one.",
        columns,
        tuple(rows),
    )


def _of(history: SeedHistory, name: str) -> float:
    return float(history.best_epoch if name == "best_epoch" else getattr(history.best, name))


def _parts_tables(large: Mapping[str, list[Cell]], book: Book) -> list[Table]:
    answered = answers_of(large["lpf_robust"], book)
    if answered is None:
        return []
    about = f"{title_of('lpf_robust')} on the large test set."
    return [
        _parts_table("by_label", "By true value", about, by_label(answered)),
        _parts_table(
            "by_credibility", "By the evidence's mean credibility", about, by_credibility(answered)
        ),
    ]


def _parts_table(name: str, title: str, caption: str, parts: Sequence[Part]) -> Table:
    columns = (
        Column("entities", "Entities", "count", None, 0),
        Column("accuracy", "Accuracy", "share", None, 4),
        Column("nll", "NLL", "number", None, 4),
        Column("mean_confidence", "Mean confidence", "share", None, 4),
        Column("ece", "ECE", "share", None, 4),
        Column("ece_null", "ECE if perfect", "share", None, 4),
    )
    rows = tuple(
        Row(part.name, part.name, tuple(_shown(part, column.name) for column in columns))
        for part in parts
    )
    return Table(name, title, caption, columns, rows)


def _shown(part: Part, name: str) -> Value | None:
    value = getattr(part, name)
    return None if value is None else Value(float(value))


def _training_figures(plan: Plan, book: Book) -> list[Figure]:
    histories = book.shelf.kept(lesson(plan)).histories
    names = tuple(str(history.seed) for history in histories)
    accuracy = Series(
        "Validation items right",
        names,
        tuple(history.best.validation_accuracy for history in histories),
        standing="ours",
    )
    parts = (
        Series(
            "Cross-entropy",
            names,
            tuple(history.best.validation_cross_entropy for history in histories),
            standing="ours",
        ),
        Series(
            "β·KL",
            names,
            tuple(
                history.best.validation_loss - history.best.validation_cross_entropy
                for history in histories
            ),
        ),
    )
    return [
        Figure(
            "seed_variance",
            "How much the seed matters",
            "Accuracy on single items of validation companies, at the best epoch of each seed.",
            "bars",
            "Seed",
            "Accuracy",
            (accuracy,),
        ),
        Figure(
            "loss_parts",
            "What the loss is made of",
            "Validation loss of each seed at its best epoch, in its two parts.",
            "bars",
            "Seed",
            "Loss",
            parts,
        ),
    ]


def _answer_figures(
    plan: Plan, large: Mapping[str, list[Cell]], shown: Mapping[str, list[Cell]], book: Book
) -> list[Figure]:
    where = f"On {plan.asked:,} new companies"
    compared = {method: cells for method, cells in large.items() if method not in ONCE[3:]}
    outside = "; the collapsed EDL is far outside" if COLLAPSED in compared else ""
    figures = [
        scatter_figure(
            "accuracy_ece",
            f"{where}. The best place is the top left{outside}.",
            {method: cells for method, cells in compared.items() if method != COLLAPSED},
            book,
        ),
        error_figure("error_rates", f"{where}, with 95 % intervals.", compared, book),
        bar_figure(
            "runtime",
            "Time of one query",
            "Median of single companies, texts already read (the transformer reads them).",
            compared,
            "runtime_ms",
            "Milliseconds",
            book,
        ),
        reliability_figure(
            "reliability",
            f"{where}. On the diagonal, a confidence means what it says.",
            shown,
            book,
        ),
        risk_figure(
            "risk_coverage",
            f"{where}: answers are taken in order of confidence, the surest first.",
            shown,
            book,
        ),
        confusion_figure("confusion", f"{where}, counts.", "lpf_robust", large, book),
        confusion_figure("confusion_paper", f"{where}, counts.", "lpf_paper_best", large, book),
    ]
    return with_points(figures)


def _findings(plan: Plan, large: Mapping[str, list[Cell]], book: Book) -> list[str]:
    sentences = (_ours(plan, large, book), _rivals(large, book), _papers_best(large, book))
    return [sentence for sentence in sentences if sentence]


def _ours(plan: Plan, large: Mapping[str, list[Cell]], book: Book) -> str:
    begin = f"On {plan.asked:,} new companies the robust ensemble has"
    ours = book.summary(large["lpf_robust"]).spreads
    if not ours:
        return f"{begin} no answers: every run of it crashed."
    return (
        f"{begin} an NLL of "
        f"{ours['nll'].mean:.4f}, an accuracy of {ours['accuracy'].mean:.4f} and an ECE of "
        f"{ours['ece'].mean:.4f}, where a perfectly calibrated predictor would show "
        f"{ours['ece_null'].mean:.4f}."
    )


def _rivals(large: Mapping[str, list[Cell]], book: Book) -> str:
    """Who is better than the ensemble; where nobody is, who comes nearest."""
    first = {method: cells[:1] for method, cells in large.items()}
    found = [
        (one.name, one.difference, one.adjusted)
        for one in comparisons("lpf_robust", first, book)
        if one.difference is not None and one.adjusted is not None
    ]
    if not found:
        return ""
    better = ", ".join(
        f"{title_of(name)} (by {difference.mean:.4f}, p {p_value:.3f})"
        for name, difference, p_value in found
        if difference.mean > 0
    )
    if better:
        return f"A lower NLL than the robust ensemble have: {better}."
    name, nearest, p_value = found[0]
    return (
        f"No method has a lower NLL; nearest is {title_of(name)}, {-nearest.mean:.4f} above (95 % "
        f"interval {-nearest.high:.4f} to {-nearest.low:.4f}, corrected p {p_value:.3f})."
    )


def _papers_best(large: Mapping[str, list[Cell]], book: Book) -> str:
    paper = book.summary(large["lpf_paper_best"]).spreads
    if not paper:
        return ""
    return (
        f"The paper's best setting has an ECE of {paper['raw_ece'].mean:.3f} as published and of "
        f"{paper['ece'].mean:.3f} once its temperature is fitted; its accuracy is "
        f"{paper['accuracy'].mean:.4f}."
    )
