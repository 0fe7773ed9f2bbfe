"""Seven domains, two presets: who is best where, and how far from a perfect reader."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import isfinite

import numpy as np

from lpf.experiments.cells import Cell, DomainData, Exam, Lesson
from lpf.experiments.exhibits import Column, Figure, Row, Series, StudyResult, Table, Value
from lpf.experiments.naming import standing_of, title_of
from lpf.experiments.plan import Plan
from lpf.experiments.printed import printed_table
from lpf.experiments.studies.book import Book
from lpf.experiments.studies.figures import with_points
from lpf.experiments.studies.tables import (
    cell_value,
    comparison_table,
    comparisons,
    method_table,
    printed_value,
)
from lpf.experiments.summaries import Summary
from lpf.metrics import Difference

TEST_SEED, VARYING_SEED = 1000, 2000
MEASURES = ("nll", "accuracy", "macro_f1", "brier", "ece", "ece_null", "ece_p", "aurc")
PRESET_WORDS = {
    "paper": "items err independently of each other",
    "hard": "items err together: borderline entities, copies, gaps, ageing notes",
}

GAP = ("lpf_robust", "lpf_paper", "perfect_reader")  # ours, where it begins, where it ends

Runs = Mapping[str, list[Cell]]


@dataclass(frozen=True)
class DomainsStudy:
    """``preset`` is that of the generator."""

    preset: str

    @property
    def name(self) -> str:
        return f"domains_{self.preset}"

    def cells(self, plan: Plan) -> list[Cell]:
        # Only the paper's table is of the data sets' own test entities.
        places = ("own", "fixed", "varying") if self.preset == "paper" else ("fixed", "varying")
        return [
            cell
            for place in places
            for method in plan.domain_methods
            for cell in self._cells(plan, method, place)
        ] + [
            cell
            for method in plan.far_methods
            for cell in self._cells(plan, method, "fixed", first=True)
        ]

    def result(self, plan: Plan, book: Book) -> StudyResult:
        fixed, varying = (
            {method: self._cells(plan, method, place) for method in plan.domain_methods}
            for place in ("fixed", "varying")
        )
        tables = [
            self._pooled(plan, "fixed", fixed, book),
            self._pooled(plan, "varying", varying, book),
        ]
        tables += [self._against(fixed, "", book), self._against(varying, "_varying", book)]
        tables += [self._by_domain(plan, fixed, book), self._gaps(plan, fixed, book)]
        if self.preset == "paper":
            tables.append(self._cross_domain(plan, book))
        if plan.far_methods:
            tables.append(self._far(plan, book))
        return StudyResult(
            self.name,
            f"{len(plan.domains)} domains, preset {self.preset}",
            f"Does the order of methods hold across domains where {PRESET_WORDS[self.preset]}?",
            tuple(self._findings(plan, fixed, varying, book)),
            tuple(tables),
            tuple(with_points([self._nll_figure(plan, fixed, book)])),
        )

    def _seeds(self, plan: Plan) -> tuple[int, ...]:
        return plan.data_seeds if self.preset == "paper" else plan.hard_seeds

    def _cells(self, plan: Plan, method: str, place: str, first: bool = False) -> list[Cell]:
        """Domain by domain, data set by data set, or the first data sets only."""
        seeds = self._seeds(plan)[:1] if first else self._seeds(plan)
        return [
            self._cell(plan, method, domain, seed, place)
            for domain in plan.domains
            for seed in seeds
        ]

    def _cell(self, plan: Plan, method: str, domain: str, seed: int, place: str) -> Cell:
        lesson = Lesson(DomainData(domain, self.preset, seed), seed=seed, seeds=plan.training_seeds)
        return Cell(lesson, self._exam(plan, domain, place), method)

    def _exam(self, plan: Plan, domain: str, place: str) -> Exam:
        if place == "own":
            return Exam()
        if place == "fixed":
            return Exam(DomainData(domain, self.preset, TEST_SEED), plan.asked)
        varied = DomainData(domain, self.preset, VARYING_SEED, ("items_min=1",))
        return Exam(varied, plan.asked // 2)

    def _pooled(self, plan: Plan, place: str, runs: Runs, book: Book) -> Table:
        entities = plan.asked if place == "fixed" else plan.asked // 2
        items = "five items each" if place == "fixed" else "one to five items each"
        count = len(self._seeds(plan))
        sets = "1 data set" if count == 1 else f"{count} data sets"
        return method_table(
            f"{self.name}_{place}",
            f"All domains together, {items}",
            f"Means over {len(plan.domains)} domains with {sets} of 630 training entities each; "
            f"{entities:,} test entities a domain, in wordings that no training saw. A temperature "
            "for everyone, by the number of items where it varies.",
            runs,
            MEASURES,
            book,
        )

    def _against(self, runs: Runs, suffix: str, book: Book) -> Table:
        return comparison_table(
            f"{self.name}_against{suffix}",
            "Paired by entity and data set; below 0 the ensemble is better. Intervals of 95 % over "
            "data sets and entities together, p-values corrected for the number of methods.",
            "lpf_robust",
            runs,
            book,
        )

    def _by_domain(self, plan: Plan, runs: Runs, book: Book) -> Table:
        columns = tuple(Column(domain, domain, "number", "lower", 4) for domain in plan.domains)
        rows = []
        for method, cells in runs.items():
            found = [book.summary(cells_of(domain, cells)) for domain in plan.domains]
            shown = tuple(cell_value(one, "nll", None, method) for one in found)
            note = _notes(zip(plan.domains, found, strict=True))
            rows.append(Row(method, title_of(method), shown, standing_of(method), note))
        rows.sort(key=_mean_of_row)
        return Table(
            f"{self.name}_nll",
            "NLL by domain",
            "Mean and sd over data sets, five items an entity.",
            columns,
            tuple(rows),
        )

    def _gaps(self, plan: Plan, runs: Runs, book: Book) -> Table:
        """How much of the way from the paper's model to the perfect reader is gone."""
        columns = (
            Column("accuracy", "Accuracy", "share", None, 4),
            Column("nll", "NLL", "number", None, 4),
            Column("paper", "Paper mode + T", "number", None, 4),
            Column("perfect", "Perfect reader", "number", None, 4),
            Column("closed", "Gap closed", "share", None, 3),
            Column("ece", "ECE", "share", None, 4),
            Column("ece_null", "ECE if perfect", "share", None, 4),
        )
        rows = [self._gap_row(domain, runs, book) for domain in plan.domains]
        return Table(
            f"{self.name}_gap",
            "The robust ensemble between the paper's model and a perfect reader",
            "A perfect reader knows what the generator meant by every text, but no more.",
            columns,
            tuple(rows),
        )

    def _gap_row(self, domain: str, runs: Runs, book: Book) -> Row:
        found = [book.summary(cells_of(domain, runs[method])) for method in GAP]
        means = [_mean(one, "nll") for one in found]
        ours = found[0]
        cells = (
            cell_value(ours, "accuracy", None, domain),
            cell_value(ours, "nll", None, domain),
            _plain(means[1]),
            _plain(means[2]),
            _plain(closed(*means)),
            cell_value(ours, "ece", None, domain),
            _plain(_mean(ours, "ece_null")),
        )
        note = _notes(zip(map(title_of, GAP), found, strict=True))
        return Row(domain, domain, cells, note=note)

    def _cross_domain(self, plan: Plan, book: Book) -> Table:
        """On the 135 test entities of each data set, as the paper does."""
        beside = printed_table("cross_domain")
        methods = ("lpf_robust", "lpf_paper_best", "lpf_learned", "vae_only")
        shown = [method for method in methods if method in plan.domain_methods]
        columns = tuple(Column(one, title_of(one), "share", "higher", 4) for one in shown)
        rows = []
        for domain in plan.domains:
            found = {
                method: book.summary(cells_of(domain, self._cells(plan, method, "own")))
                for method in shown
            }
            cells = []
            for method, summary in found.items():
                paper, doubt = printed_value(beside, domain, method)
                spread = summary.spreads.get("accuracy")
                missing = Value(None, paper=paper, doubt=doubt)
                cells.append(missing if spread is None else spread.value(paper, doubt))
            note = _notes((title_of(method), one) for method, one in found.items())
            rows.append(Row(domain, domain, tuple(cells), note=note))
        return Table(
            "cross_domain",
            "Accuracy on each data set's own 135 test entities",
            "Mean and sd over data sets. The paper has one data set a domain and reports the best "
            "of seven seeds by its test accuracy.",
            columns,
            tuple(rows),
        )

    def _far(self, plan: Plan, book: Book) -> Table:
        """Methods that were run on the first data set of each domain; beside them, the same runs
        of those that matter."""
        beside = ("lpf_robust", "vae_only_ensemble", "logistic_mean", "perfect_reader")
        runs = {
            method: self._cells(plan, method, "fixed", first=True)
            for method in (*plan.far_methods, *beside)
        }
        return method_table(
            f"{self.name}_far",
            "Those that are slow to train, on the first data set of each domain",
            f"{len(plan.domains)} runs a method, five items an entity. Training on one core.",
            runs,
            (*MEASURES, "fit_seconds"),
            book,
        )

    def _nll_figure(self, plan: Plan, runs: Runs, book: Book) -> Figure:
        methods = [
            method
            for method in (
                "lpf_robust",
                "vae_only_ensemble",
                "lpf_paper",
                "lpf_learned",
                "perfect_reader",
            )
            if method in runs
        ]
        series = tuple(
            Series(
                title_of(method),
                plan.domains,
                tuple(
                    _mean(book.summary(cells_of(domain, runs[method])), "nll")
                    for domain in plan.domains
                ),
                standing=standing_of(method),
            )
            for method in methods
        )
        return Figure(
            f"{self.name}_nll",
            "NLL by domain",
            "Five items an entity; lower is better.",
            "bars",
            "",
            "NLL",
            series,
        )

    def _findings(self, plan: Plan, fixed: Runs, varying: Runs, book: Book) -> list[str]:
        sentences = [
            _standing(f"On the preset {self.preset}, with five items an entity,", fixed, book),
            _standing(f"On the preset {self.preset}, with one to five items,", varying, book),
        ]
        sentences += [self._closing(plan, fixed, book), _calibrated(fixed["lpf_robust"], book)]
        return [sentence for sentence in sentences if sentence]

    def _closing(self, plan: Plan, fixed: Runs, book: Book) -> str:
        """Nothing where a run crashed: means would be of different data sets."""
        found = [book.summary(fixed[method]) for method in GAP]
        if any(one.runs < one.asked for one in found):
            return ""
        whole = closed(*(_mean(one, "nll") for one in found))
        by_domain = [
            closed(*(_mean(book.summary(cells_of(domain, fixed[method])), "nll") for method in GAP))
            for domain in plan.domains
        ]
        known = [share for share in by_domain if share is not None]
        if whole is None or not known:
            return ""
        return (
            f"The ensemble closes {whole:.0%} of the gap between the paper's model with a fitted "
            f"temperature and a perfect reader; by domain {min(known):.0%} to {max(known):.0%}."
        )


def cells_of(domain: str, cells: list[Cell]) -> list[Cell]:
    return [
        cell
        for cell in cells
        if isinstance(cell.lesson.data, DomainData) and cell.lesson.data.domain == domain
    ]


def closed(ours: float | None, paper: float | None, perfect: float | None) -> float | None:
    """The share of the way from the paper's loss to the perfect reader's: 0 is no better than the
    paper's, 1 as good as the reader. None where one of them is not known, or there is no way."""
    if ours is None or paper is None or perfect is None or paper <= perfect:
        return None
    return (paper - ours) / (paper - perfect)


def _calibrated(cells: list[Cell], book: Book) -> str:
    found = [book.summary([cell]).spreads.get("ece_p") for cell in cells]
    p_values = [one.mean for one in found if one is not None]
    if not p_values:
        return ""
    return (
        f"Its ECE can be told from that of a perfectly calibrated predictor in "
        f"{sum(p_value < 0.05 for p_value in p_values)} of {len(p_values)} data sets (at 5 %)."
    )


def _standing(where: str, runs: Runs, book: Book) -> str:
    ours = _mean(book.summary(runs["lpf_robust"]), "nll")
    if ours is None:
        return f"{where} the robust ensemble has no NLL that can be compared."
    begin = f"{where} the robust ensemble has an NLL of {ours:.4f}"
    found = [
        (one.name, one.difference)
        for one in comparisons("lpf_robust", runs, book)
        if one.difference is not None
    ]
    if not found:
        return f"{begin}; no other method could be compared with it."
    name, nearest = found[0]
    return (
        f"{begin}; the next method, {title_of(name)}, is {abs(nearest.mean):.4f} "
        f"{_side(nearest)} (95 % interval {-nearest.high:.4f} to {-nearest.low:.4f})."
    )


def _side(difference: Difference) -> str:
    """Where the other method lies; ``difference`` is ours less its."""
    if difference.mean <= 0:
        return "above"
    return "below: it is better" if difference.low > 0 else "below, which may be chance"


def _mean(summary: Summary, measure: str) -> float | None:
    """None where every run crashed, or a loss is infinite."""
    spread = summary.spreads.get(measure)
    return spread.mean if spread is not None and isfinite(spread.mean) else None


def _plain(mean: float | None) -> Value | None:
    return None if mean is None else Value(mean)


def _notes(summaries: Iterable[tuple[str, Summary]]) -> str | None:
    """Each note after those it is said of; what is said of answers before their temperature has
    no place in these tables."""
    about: dict[str, list[str]] = {}
    for name, summary in summaries:
        for note in summary.notes:
            if not note.startswith("raw_"):
                about.setdefault(note, []).append(name)
    return "; ".join(f"{', '.join(names)}: {note}" for note, names in about.items()) or None


def _mean_of_row(row: Row) -> tuple[bool, bool, float]:
    """References last, and before them those with a gap: a mean over fewer domains is none."""
    values = [cell.value if isinstance(cell, Value) else None for cell in row.cells]
    known = [value for value in values if value is not None]
    mean = float(np.mean(known)) if known else np.inf
    return row.standing == "reference", len(known) < len(values), mean
