"""T2, P1 and P5: the error of factors that are averages over random samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import log, sqrt

import numpy as np

from lpf.combine import Segments, combine_paper
from lpf.engine import Items
from lpf.factors import ConversionConfig, Converter
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.statement import RISK, CheckedStatement, printed, verdict_of
from lpf_paper.studies.theorems.trained import LEARNED, PAPER, TrainedNetworks, first_items

SAMPLES = (4, 16, 32, 64)
ENTITIES, ITEMS = 20, 5
REFERENCE_SEEDS, REFERENCE_SAMPLES = 8, 4096
Z = 1.959964  # 95 % of a normal distribution lie within this many standard deviations


@dataclass(frozen=True)
class SampledFactors:
    """``potential`` [R, N, V] by number of samples, of N items drawn R times; ``truth`` [N, V] is
    the integral, ``variance`` [N, V] that of a single draw."""

    potential: Mapping[int, FloatArray]
    truth: FloatArray
    variance: FloatArray

    def errors(self, samples: int) -> FloatArray:
        """The largest error of any value, [R, N]."""
        return np.asarray(np.abs(self.potential[samples] - self.truth).max(axis=2))

    def mean_error(self, samples: int) -> float:
        return float(self.errors(samples).mean())

    def exceeded(self, samples: int) -> float:
        """The share of factors whose error is above the bound."""
        return float((self.errors(samples) > hoeffding(samples, self.truth.shape[1])).mean())

    def largest_variance(self, samples: int) -> float:
        """Of any item and value, over the repetitions."""
        return float(self.potential[samples].var(axis=0, ddof=1).max())

    def variance_ratio(self, samples: int) -> float:
        """Measured variance over that of one draw divided by M, averaged over items and values."""
        measured = self.potential[samples].var(axis=0, ddof=1)
        return float(measured.sum() / (self.variance.sum() / samples))

    def coverage(self, samples: int) -> float:
        """How often the truth is within 1.96 standard errors."""
        reach = Z * np.sqrt(self.variance / samples)
        return float((np.abs(self.potential[samples] - self.truth) <= reach).mean())


def hoeffding(samples: int, values: int, risk: float = RISK) -> float:
    """The bound of T2."""
    return sqrt(log(2 * values / risk) / (2 * samples))


def sample_factors(networks: TrainedNetworks, repetitions: int) -> SampledFactors:
    fitted = networks.fitted(PAPER)
    runtime, predicate = fitted.engine.runtime, fitted.predicate
    posteriors = runtime.encode(_items(networks).features)

    def converter(sampler: str, samples: int, seed: int) -> Converter:
        return Converter(runtime, predicate, ConversionConfig(sampler, samples, seed=seed))

    exact = [
        converter("sobol", REFERENCE_SAMPLES, seed).from_posteriors(posteriors).potential
        for seed in range(REFERENCE_SEEDS)
    ]
    single = converter("plain", REFERENCE_SAMPLES, 0).sampled(posteriors)[0]
    drawn = {
        samples: np.stack(
            [
                converter("plain", samples, seed).from_posteriors(posteriors).potential
                for seed in range(repetitions)
            ]
        )
        for samples in SAMPLES
    }
    return SampledFactors(drawn, np.mean(exact, axis=0), single.var(axis=1, ddof=1))


def sampling_statements(networks: TrainedNetworks, quick: bool) -> list[CheckedStatement]:
    sampled = sample_factors(networks, 50 if quick else 200)
    return [_error_bound(networks, sampled), _variance_bound(sampled), _limit(networks, sampled)]


def _error_bound(networks: TrainedNetworks, sampled: SampledFactors) -> CheckedStatement:
    worst = max(sampled.exceeded(samples) for samples in SAMPLES)
    slope, fit = power_law(SAMPLES, [sampled.mean_error(samples) for samples in SAMPLES])
    moved = seed_moves_learned(networks)
    return CheckedStatement(
        "T2",
        "T2, error of sampled factors",
        "With probability 1 - d the largest error of a factor is at most "
        "sqrt(log(2V/d) / (2M)), for V values and M samples; said of both variants.",
        "" if moved else "For LPF-SPN with independent samples only: LPF-Learned draws none.",
        f"The bound was exceeded by {worst:.2%} of the factors, at most 5 % are allowed; another "
        f"seed moves the answers of LPF-Learned by {moved:g}.",
        f"With 16 samples the mean error was {sampled.mean_error(16):.4f} (the paper: "
        f"{printed('monte_carlo_error', '16', 'mean_error').value:.3f}) and the bound is "
        f"{hoeffding(16, sampled.truth.shape[1]):.3f}. The error falls as M to the power "
        f"{slope:.2f} (R² {fit:.3f}; the paper has "
        f"{printed('theory_numbers', 'T2 fit_r2').value:.2f}).",
        verdict_of(stated=worst <= RISK and moved > 0.0, corrected=worst <= RISK),
        (_error_table(sampled),),
        (_error_figure(sampled),),
    )


def _variance_bound(sampled: SampledFactors) -> CheckedStatement:
    shares = {samples: 4 * samples * sampled.largest_variance(samples) for samples in SAMPLES}
    worst = max(shares.values())
    ratio = sampled.variance_ratio(16)
    return CheckedStatement(
        "P1",
        "P1, variance of sampled factors",
        "The variance of an average of M samples is at most 1 / (4M).",
        "",
        f"The largest variance of any item and value was {worst:.0%} of the bound.",
        f"On average it was {ratio:.2f} times the variance of one draw divided by 16. The paper's "
        "standard error of "
        f"{printed('monte_carlo_standard_error', '16', 'standard_error').value:.3f} for 16 samples "
        f"is the largest possible; the typical one is "
        f"{sqrt(float(sampled.variance.mean()) / 16):.4f}.",
        verdict_of(stated=worst <= 1.0, corrected=None),
    )


def _limit(networks: TrainedNetworks, sampled: SampledFactors) -> CheckedStatement:
    coverage = sampled.coverage(64)
    largest = float(sampled.variance.max())
    noise = answer_noise(networks, sampled)
    return CheckedStatement(
        "P5",
        "P5, convergence of sampled factors",
        "The average over M samples converges to the integral; sqrt(M) times its error becomes "
        "normal, with a variance of at most 1/4.",
        "",
        f"With 64 samples {coverage:.1%} of the factors were within 1.96 standard errors of the "
        f"integral (a normal error has 95 %), and one draw has a variance of at most "
        f"{largest:.3f}.",
        f"The remark that the product smooths the noise depends on the weights: with 16 samples "
        f"the standard deviation of a factor is {noise['factor']:.4f}, that of an answer "
        f"{noise['weighted']:.4f} with the paper's weights and {noise['plain']:.4f} with weight 1.",
        verdict_of(stated=0.9 <= coverage <= 1.0 and largest <= 0.25, corrected=None),
        (),
        (_variance_figure(sampled),),
    )


def answer_noise(networks: TrainedNetworks, sampled: SampledFactors) -> dict[str, float]:
    """Standard deviation over repeated draws of factors, and of the answers made from them."""
    items = _items(networks)
    answers = networks.answer(PAPER, items)
    assert answers.weight is not None  # paper mode always has weights
    values = sampled.truth.shape[1]
    prior = np.full(values, -log(values))
    segments = Segments.of_counts([ITEMS] * ENTITIES)

    def spread(weight: FloatArray) -> float:
        drawn = [
            combine_paper(one, weight, prior, segments).distribution
            for one in sampled.potential[16]
        ]
        return root_mean(np.var(drawn, axis=0, ddof=1))

    return {
        "factor": root_mean(sampled.potential[16].var(axis=0, ddof=1)),
        "weighted": spread(answers.weight),
        "plain": spread(np.ones(ENTITIES * ITEMS)),
    }


def root_mean(variances: FloatArray) -> float:
    return sqrt(float(np.mean(variances)))


def seed_moves_learned(networks: TrainedNetworks) -> float:
    """The largest change of an answer of LPF-Learned with another seed."""
    first, second = (
        networks.answer(LEARNED, _items(networks), seed=seed).distribution for seed in (0, 1)
    )
    return float(np.abs(first - second).max())


def power_law(x: Sequence[float], y: Sequence[float]) -> tuple[float, float]:
    """Exponent and R² of y = a·x^b, fitted to the logarithms."""
    logs_x, logs_y = np.log(x), np.log(y)
    slope, start = np.polyfit(logs_x, logs_y, 1)
    rest = logs_y - (start + slope * logs_x)
    return float(slope), float(1.0 - rest.var() / logs_y.var())


def _items(networks: TrainedNetworks) -> Items:
    return first_items(networks.usual, ITEMS, ENTITIES)


ERROR_COLUMNS = (
    Column("mean_error", "Mean error", "share", None, 4),
    Column("error_95", "95th percentile", "share", None, 4),
    Column("bound", "Bound", "share", None, 4),
    Column("exceeded", "Above the bound", "share", None, 4),
    Column("variance", "Largest variance", "number", None, 5),
    Column("variance_bound", "1 / (4M)", "number", None, 5),
    Column("coverage", "Within 1.96 standard errors", "share", None, 4),
)


def _error_table(sampled: SampledFactors) -> Table:
    repetitions, items, values = sampled.potential[SAMPLES[0]].shape
    return Table(
        "theorems_sampling",
        "Error of sampled factors by number of samples",
        f"{items} items, {repetitions} draws each (seeds 0 to {repetitions - 1}). The integral is "
        f"the mean of {REFERENCE_SEEDS} sets of {REFERENCE_SAMPLES:,} Sobol points. The error is "
        f"the largest over the {values} values; the bound allows 5 % above it.",
        ERROR_COLUMNS,
        tuple(_error_row(sampled, samples) for samples in SAMPLES),
    )


def _error_row(sampled: SampledFactors, samples: int) -> Row:
    errors, row = sampled.errors(samples), str(samples)

    def value(number: float, column: str) -> Value:
        beside = printed("monte_carlo_error", row, column)
        return Value(number, paper=beside.value, doubt=" ".join(beside.doubts) or None)

    return Row(
        row,
        f"{samples} samples",
        (
            value(float(errors.mean()), "mean_error"),
            value(float(np.quantile(errors, 0.95)), "error_95"),
            value(hoeffding(samples, sampled.truth.shape[1]), "bound"),
            Value(sampled.exceeded(samples)),
            Value(sampled.largest_variance(samples)),
            Value(0.25 / samples),
            Value(sampled.coverage(samples)),
        ),
    )


def _error_figure(sampled: SampledFactors) -> Figure:
    x = tuple(float(samples) for samples in SAMPLES)
    return Figure(
        "theorems_sampling",
        "T2: error of a factor by number of samples",
        "The bound holds with room to spare: it assumes the largest possible variance.",
        "lines",
        "Samples",
        "Error of a factor",
        (
            Series("Bound", x, _each(lambda one: hoeffding(one, sampled.truth.shape[1]))),
            Series(
                "95th percentile",
                x,
                _each(lambda one: float(np.quantile(sampled.errors(one), 0.95))),
                standing="ours",
            ),
            Series("Mean error", x, _each(sampled.mean_error), standing="ours"),
            Series(
                "Mean error, the paper's",
                x,
                _each(lambda one: printed("monte_carlo_error", str(one), "mean_error").value),
                standing="reference",
            ),
        ),
        log_x=True,
    )


def _variance_figure(sampled: SampledFactors) -> Figure:
    x = tuple(float(samples) for samples in SAMPLES)
    return Figure(
        "theorems_variance",
        "P1: largest variance by number of samples",
        "Of a sampled factor, over all items and values.",
        "lines",
        "Samples",
        "Variance",
        (
            Series("1 / (4M)", x, _each(lambda one: 0.25 / one)),
            Series("Largest measured", x, _each(sampled.largest_variance), standing="ours"),
        ),
        log_x=True,
    )


def _each(number: Callable[[int], float]) -> tuple[float, ...]:
    return tuple(number(samples) for samples in SAMPLES)
