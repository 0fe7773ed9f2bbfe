"""T7: is the variance of an answer the sum of its two parts, exactly?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from lpf.combine import combine_paper
from lpf.factors import ConversionConfig, Converter
from lpf.types import FloatArray
from lpf_paper.exhibits import Column, Figure, Row, Series, Table, Value
from lpf_paper.studies.theorems.sampling import seed_moves_learned
from lpf_paper.studies.theorems.statement import CheckedStatement, printed, verdict_of
from lpf_paper.studies.theorems.trained import (
    BEST,
    PAPER,
    ROBUST,
    TrainedNetworks,
    first_items,
)

DRAWS = (4, 16, 64, 256)
MOST = 512  # draws of the reference
REPETITIONS, DRAWN_ENTITIES = 32, 200  # of few draws, to measure their bias
EXACT = 1e-9  # rounding
CLOSE = 0.05  # of the reference, for parts that are estimated from draws
CHECKED_ENTITIES, CHECKED_DRAWS, ITEMS = 50, 64, 5
TITLES = {PAPER: "LPF-SPN, paper mode", BEST: "LPF-SPN, paper's best", ROBUST: "LPF-SPN, robust"}


@dataclass(frozen=True)
class Parts:
    """Means over entities of the parts of the uncertainty, in variance and in entropy (nats), with
    the answer's own. The gaps are the answer's own minus the sum of its parts, as a mean of
    absolute values."""

    total: float
    epistemic: float
    aleatoric: float
    own: float
    gap: float
    entropy: float
    entropy_epistemic: float
    entropy_aleatoric: float
    entropy_gap: float


def unbiased(epistemic: float, draws: int) -> float:
    """The epistemic variance without the bias of ``draws`` draws: the mean of the draws varies too,
    which makes their spread too small by the factor 1 - 1/M."""
    return epistemic * draws / (draws - 1)


def own_variance(distribution: FloatArray) -> FloatArray:
    """Of the value as a one-hot vector, summed over values, [E, V] -> [E]."""
    return np.asarray((distribution * (1.0 - distribution)).sum(axis=-1))


def parts_of(networks: TrainedNetworks, method: str, draws: int) -> Parts:
    answers = networks.answer(method, networks.usual.items, uncertainty_samples=draws)
    found = answers.uncertainty
    assert found is not None  # draws were requested
    own = own_variance(answers.distribution)
    return Parts(
        float(found.variance.mean()),
        float(found.variance_epistemic.mean()),
        float(found.variance_aleatoric.mean()),
        float(own.mean()),
        float(np.abs(own - found.variance).mean()),
        float(found.entropy.mean()),
        float(found.epistemic.mean()),
        float(found.aleatoric.mean()),
        float(np.abs(found.gap).mean()),
    )


@dataclass(frozen=True)
class VarianceParts:
    """Means over entities and seeds, from this many draws."""

    epistemic: float
    aleatoric: float


def variance_parts(networks: TrainedNetworks, draws: int) -> VarianceParts:
    """Paper mode, with as many seeds as give MOST draws in all, at most REPETITIONS."""
    items = first_items(networks.usual, ITEMS, DRAWN_ENTITIES)
    parts = [
        networks.answer(PAPER, items, uncertainty_samples=draws, seed=seed).uncertainty
        for seed in range(min(REPETITIONS, MOST // draws))
    ]
    known = [one for one in parts if one is not None]
    return VarianceParts(
        float(np.mean([one.variance_epistemic for one in known])),
        float(np.mean([one.variance_aleatoric for one in known])),
    )


@dataclass(frozen=True)
class IdentityErrors:
    """The largest difference, over entities, between the variance and the entropy of the mean of
    the draws, both computed from the draws directly, and the sum of the parts."""

    variance: float
    entropy: float


def identity_errors(networks: TrainedNetworks) -> IdentityErrors:
    """Paper mode, with every step from latent code to answer repeated here, draw by draw."""
    fitted = networks.fitted(PAPER)
    runtime, predicate, draws = fitted.engine.runtime, fitted.predicate, CHECKED_DRAWS
    items = first_items(networks.usual, ITEMS, CHECKED_ENTITIES)
    items.keys, segments = np.arange(len(items), dtype=np.uint64), items.layout
    options = replace(fitted.options, uncertainty_samples=draws)
    answers = fitted.engine.answer(items, predicate, options)
    found, weight = answers.uncertainty, answers.weight
    assert found is not None  # draws were requested
    assert weight is not None  # paper mode always has weights
    config = ConversionConfig("plain", draws, seed=options.seed)
    posteriors = runtime.encode(items.features)
    drawn = Converter(runtime, predicate, config).sampled(posteriors, items.keys)[0]
    prior = np.full(drawn.shape[2], -np.log(drawn.shape[2]))
    mean = np.mean(
        [
            combine_paper(drawn[:, draw], weight, prior, segments).distribution
            for draw in range(draws)
        ],
        axis=0,
    )
    entropy = -(mean * np.log(mean)).sum(axis=1)
    parts = found.variance_aleatoric + found.variance_epistemic
    return IdentityErrors(
        float(np.abs(own_variance(mean) - parts).max()),
        float(np.abs(entropy - found.aleatoric - found.epistemic).max()),
    )


def uncertainty_statement(networks: TrainedNetworks) -> CheckedStatement:
    reference = {method: parts_of(networks, method, MOST) for method in TITLES}
    by_draws = {draws: variance_parts(networks, draws) for draws in DRAWS}
    errors, moved = identity_errors(networks), seed_moves_learned(networks)
    paper, few = reference[PAPER], by_draws[DRAWS[0]]
    is_exact = max(errors.variance, errors.entropy) <= EXACT
    best = unbiased(variance_parts(networks, MOST).epistemic, MOST)
    is_unbiased = abs(unbiased(few.epistemic, DRAWS[0]) / best - 1.0) <= CLOSE
    is_of_answer = paper.gap <= EXACT and moved > 0.0
    chosen = reference[BEST]
    total, epistemic = (
        printed("uncertainty_parts", BEST, column).value for column in ("total", "epistemic")
    )
    return CheckedStatement(
        "T7",
        "T7, parts of the uncertainty",
        "The variance of an answer is exactly the variance between draws (epistemic) plus the mean "
        "variance within a draw (aleatoric); said of both variants.",
        "It holds for the mean of the draws, by definition, in variance and in entropy. The "
        "answer of LPF-SPN is another one, so that a gap remains, and LPF-Learned draws nothing to "
        "split. With M draws the epistemic variance must be multiplied by M / (M - 1).",
        f"The answer with the paper's best settings has a variance of {chosen.own:.4f}, its parts "
        f"add up to {chosen.total:.4f}; for the mean of the draws the sum is exact to "
        f"{max(errors.variance, errors.entropy):.0e}, and another seed moves LPF-Learned by "
        f"{moved:g}.",
        f"Of the sum {chosen.epistemic:.4f} is epistemic (the paper: {epistemic:.3f} of "
        f"{total:.3f}). The gap is {chosen.gap:.4f} on average in variance and "
        f"{chosen.entropy_gap:.4f} nats in entropy; in paper mode {paper.gap:.4f} and "
        f"{paper.entropy_gap:.4f}. With {DRAWS[0]} draws the epistemic variance is "
        f"{few.epistemic / best:.2f} of its value with {MOST:,}, and "
        f"{unbiased(few.epistemic, DRAWS[0]) / best:.2f} after the correction.",
        verdict_of(stated=is_exact and is_of_answer, corrected=is_exact and is_unbiased),
        (_parts_table(reference), _draws_table(by_draws, best)),
        (_figure(by_draws, best),),
    )


def _parts_table(reference: Mapping[str, Parts]) -> Table:
    def value(number: float, method: str, column: str) -> Value:
        if method != BEST or column not in ("total", "epistemic", "aleatoric"):
            return Value(number)
        return Value(number, paper=printed("uncertainty_parts", method, column).value)

    columns = (
        Column("own", "Variance of the answer", "number", None, 4),
        Column("total", "Sum of its parts", "number", None, 4),
        Column("epistemic", "Epistemic", "number", None, 4),
        Column("aleatoric", "Aleatoric", "number", None, 4),
        Column("gap", "Gap", "number", None, 4),
        Column("entropy", "Entropy of the answer", "number", None, 4),
        Column("entropy_epistemic", "Epistemic, nats", "number", None, 4),
        Column("entropy_aleatoric", "Aleatoric, nats", "number", None, 4),
        Column("entropy_gap", "Gap, nats", "number", None, 4),
    )
    return Table(
        "theorems_uncertainty",
        "T7: parts of the uncertainty",
        f"Compliance, new entities with five items each, {MOST:,} draws of all latent codes; means "
        "over entities. Variances are summed over values. A gap is the mean absolute difference "
        "between the answer's own and the sum of its parts.",
        columns,
        tuple(
            Row(
                method,
                TITLES[method],
                tuple(value(getattr(one, column.name), method, column.name) for column in columns),
                "ours" if method == ROBUST else "rival",
            )
            for method, one in reference.items()
        ),
    )


def _draws_table(by_draws: Mapping[int, VarianceParts], best: float) -> Table:
    return Table(
        "theorems_uncertainty_draws",
        "T7: the epistemic variance by number of draws",
        f"Paper mode, {DRAWN_ENTITIES} entities, mean over up to {REPETITIONS} seeds (0 and up). "
        f"The share is of the value with {MOST:,} draws; a biased estimate has a share of 1 - 1/M.",
        (
            Column("epistemic", "Epistemic", "number", None, 4),
            Column("share", "Share", "share", None, 3),
            Column("expected", "1 - 1/M", "share", None, 3),
            Column("corrected", "Share after the correction", "share", None, 3),
            Column("aleatoric", "Aleatoric", "number", None, 4),
        ),
        tuple(
            Row(
                str(draws),
                f"{draws} draws",
                (
                    Value(one.epistemic),
                    Value(one.epistemic / best),
                    Value(1.0 - 1.0 / draws),
                    Value(unbiased(one.epistemic, draws) / best),
                    Value(one.aleatoric),
                ),
            )
            for draws, one in by_draws.items()
        ),
    )


def _figure(by_draws: Mapping[int, VarianceParts], best: float) -> Figure:
    x = tuple(float(draws) for draws in by_draws)
    corrected = tuple(unbiased(one.epistemic, draws) for draws, one in by_draws.items())
    return Figure(
        "theorems_uncertainty",
        "T7: the epistemic variance by number of draws",
        "Paper mode. With few draws it comes out too small by the factor 1 - 1/M.",
        "lines",
        "Draws",
        "Epistemic variance",
        (
            Series("As computed", x, tuple(one.epistemic for one in by_draws.values())),
            Series("Times M / (M - 1)", x, corrected, standing="ours"),
            Series(f"With {MOST:,} draws", x, (best,) * len(x), standing="reference"),
        ),
        log_x=True,
    )
