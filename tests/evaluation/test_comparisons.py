from __future__ import annotations

import numpy as np
import pytest
from answered_runs import a_crash, a_run, calibrated_run

from lpf import metrics
from lpf.errors import ConfigError, EvidenceError
from lpf.evaluation.comparisons import Comparison, compare
from lpf.evaluation.predictions import Predictions
from lpf.metrics import Difference, holm, paired_difference

LOSSES = {
    "nll": metrics.log_losses,
    "brier": metrics.brier_losses,
    "error": lambda rows, labels: (rows.argmax(axis=1) != labels).astype(float),
}


def runs_of(sharpness: float, seeds: int = 3, entities: int = 120, **changes) -> list[Predictions]:
    """The same entities in every run."""
    return [calibrated_run(entities, seed, sharpness=sharpness, **changes) for seed in range(seeds)]


def difference_of(comparison: Comparison) -> Difference:
    assert comparison.difference is not None
    return comparison.difference


@pytest.mark.parametrize("measure", ["nll", "brier", "error"])
def test_runs_of_the_same_entities_are_a_paired_difference(measure) -> None:
    reference, other = runs_of(1.0), runs_of(3.0)
    found = compare(reference, {"sharp": other}, measure, draws=2000, seed=4)
    losses = [
        np.array([LOSSES[measure](run.answers, run.labels) for run in runs])
        for runs in (reference, other)
    ]
    expected = paired_difference(*losses, np.random.default_rng(4), draws=2000)
    (comparison,) = found
    assert (comparison.name, comparison.measure, comparison.note) == ("sharp", measure, None)
    assert (comparison.seeds, comparison.runs, comparison.entities) == (3, 3, 360)
    difference = difference_of(comparison)
    assert difference.mean == pytest.approx(float((losses[0] - losses[1]).mean()), rel=0, abs=1e-12)
    for name in ("mean", "low", "high", "p_value"):
        ours, theirs = getattr(difference, name), getattr(expected, name)
        assert ours == pytest.approx(theirs, rel=0, abs=1e-12)
    assert comparison.adjusted == difference.p_value


def test_below_zero_the_reference_is_better() -> None:
    """Two answers right where the other has one of them wrong, worked out by hand."""
    right = a_run([[0.8, 0.2], [0.2, 0.8]], [0, 1])
    half = a_run([[0.8, 0.2], [0.6, 0.4]], [0, 1])
    for measure, expected in (
        ("nll", -np.log(0.8 / 0.4) / 2),
        ("brier", (2 * 0.2**2 - 2 * 0.6**2) / 2),
        ("error", -0.5),
    ):
        (found,) = compare([right], {"half": [half]}, measure, draws=50)
        assert difference_of(found).mean == pytest.approx(expected, rel=0, abs=1e-12)


def test_a_single_reference_run_is_paired_with_every_run() -> None:
    reference, other = runs_of(1.0, seeds=1), runs_of(3.0)
    once = compare(reference, {"sharp": other, "one": other[:1]}, draws=500)
    thrice = compare(reference * 3, {"sharp": other}, draws=500)
    assert difference_of(once[0]) == difference_of(thrice[0])
    assert [(one.seeds, one.runs) for one in once] == [(3, 3), (1, 1)]


def test_p_values_are_holms_over_all_others() -> None:
    reference = runs_of(1.0)
    others = {
        f"sharp {sharpness}": [
            calibrated_run(120, seed + 10, sharpness=sharpness) for seed in range(3)
        ]
        for sharpness in (1.02, 1.5, 3.0, 0.9)
    }
    found = compare(reference, others, draws=2000)
    assert [one.name for one in found] == list(others)
    p_values = np.array([difference_of(one).p_value for one in found])
    np.testing.assert_array_equal([one.adjusted for one in found], holm(p_values))
    assert len(set(p_values)) > 1
    # Each alone sees the same draws.
    for one in found:
        (alone,) = compare(reference, {one.name: others[one.name]}, draws=2000)
        assert difference_of(alone).low == pytest.approx(difference_of(one).low, abs=1e-12)
        assert alone.adjusted == difference_of(alone).p_value


def own_entities(name: str, size: int) -> tuple[str, ...]:
    return tuple(f"{name}-{place}" for place in range(size))


def test_seeds_of_other_entities_are_drawn_then_entities_inside_each() -> None:
    """Constant differences inside a seed: only which seeds are drawn is left, 0, .5 or 1."""
    right, wrong = np.tile([1.0, 0.0], (40, 1)), np.tile([0.0, 1.0], (40, 1))
    names = [own_entities(fold, 40) for fold in "ab"]
    reference = [
        a_run(wrong, [0] * 40, entity_ids=names[0]),
        a_run(right, [0] * 40, entity_ids=names[1]),
    ]
    other = [a_run(right, [0] * 40, entity_ids=ids) for ids in names]
    (found,) = compare(reference, {"other": other}, "error", draws=2000)
    difference = difference_of(found)
    assert (difference.low, difference.mean, difference.high) == pytest.approx((0.0, 0.5, 1.0))
    assert found.entities == 80


def test_seeds_count_equally_whatever_their_size() -> None:
    first = a_run(np.tile([0.0, 1.0], (10, 1)), [0] * 10, entity_ids=own_entities("a", 10))
    second = a_run(np.tile([1.0, 0.0], (90, 1)), [0] * 90, entity_ids=own_entities("b", 90))
    others = [
        a_run(
            np.tile([1.0, 0.0], (len(run.labels), 1)),
            [0] * len(run.labels),
            entity_ids=run.entity_ids,
        )
        for run in (first, second)
    ]
    (found,) = compare([first, second], {"other": others}, "error", draws=100)
    assert difference_of(found).mean == pytest.approx(0.5)


def test_equal_ids_of_different_entities_are_not_paired() -> None:
    """Generated data of three seeds: e0, e1, ... each time, with other labels. Three times as many
    entities know more than the same ones asked three times."""
    same, others = (_width_with(labels) for labels in ((0, 0, 0), (0, 1, 2)))
    assert same == pytest.approx(2 * 1.96 * 0.5 / 101**0.5, rel=0.1)
    # Seeds that are drawn twice count twice: √(5/9) of that, not √(1/3).
    assert others == pytest.approx((5 / 9) ** 0.5 * same, rel=0.1)


def _width_with(labels: tuple[int, ...]) -> float:
    """The reference errs in every second of 100 entities, the other method never."""
    misses = np.arange(100) % 2
    reference = [a_run(np.eye(3)[(misses + label) % 3], [label] * 100) for label in labels]
    other = [a_run(np.eye(3)[[label] * 100], [label] * 100) for label in labels]
    (found,) = compare(reference, {"other": other}, "error", draws=4000)
    return difference_of(found).high - difference_of(found).low


def test_the_interval_holds_the_truth_as_often_as_promised() -> None:
    """Errors of 3 seeds with 60 entities of their own each; the true difference is .2 - .3."""
    generator, repetitions, held = np.random.default_rng(0), 250, 0
    names = [own_entities(fold, 60) for fold in "abc"]
    for _ in range(repetitions):
        sides = [
            [
                a_run(
                    np.eye(2)[(generator.random(60) < chance).astype(int)], [0] * 60, entity_ids=ids
                )
                for ids in names
            ]
            for chance in (0.2, 0.3)
        ]
        (found,) = compare(sides[0], {"other": sides[1]}, "error", draws=300)
        held += difference_of(found).low <= -0.1 <= difference_of(found).high
    # Seeds that do not differ are drawn all the same, so more is held than promised.
    assert 0.93 <= held / repetitions <= 1.0


def test_methods_that_are_alike_differ_by_group_less_often() -> None:
    """No true difference, 20 groups of 10 with equal errors: treated as 200 independent entities,
    they seem to differ in a third of cases. Three standard errors of 150 repetitions at .1 are
    .073."""
    generator, repetitions, seeming = np.random.default_rng(0), 150, np.zeros(2)
    groups = {f"e{place}": f"g{place // 10}" for place in range(200)}
    for _ in range(repetitions):
        sides = [
            a_run(np.eye(2)[np.repeat(generator.random(20) < 0.3, 10).astype(int)], [0] * 200)
            for _ in range(2)
        ]
        for at, given in enumerate((None, groups)):
            (found,) = compare(sides[:1], {"other": sides[1:]}, "error", groups=given, draws=300)
            seeming[at] += difference_of(found).p_value < 0.05
    alone, grouped = seeming / repetitions
    assert alone > 0.3
    assert grouped < 0.15


@pytest.mark.parametrize(("number", "compared"), [(5, False), (6, True)])
def test_few_groups_are_not_compared(number: int, compared: bool) -> None:
    groups = {f"e{place}": f"g{place % number}" for place in range(120)}
    (found,) = compare(runs_of(1.0), {"sharp": runs_of(3.0)}, groups=groups, draws=50)
    assert (found.difference is not None) == (found.adjusted is not None) == compared
    note = "not compared: the test entities belong to fewer than 6 groups"
    assert found.note == (None if compared else note)


def test_crashed_runs_are_left_out_of_both() -> None:
    reference, other = runs_of(1.0, seeds=4), runs_of(2.0, seeds=4)
    reference[1], other[3] = a_crash([0, 1]), a_crash([0, 1])
    partly, whole = compare(reference, {"partly": other, "whole": runs_of(2.0, seeds=4)}, draws=500)
    assert (partly.seeds, partly.runs, partly.entities) == (2, 4, 240)
    assert partly.note == "2 of 4 runs, in which both have predictions"
    assert whole.seeds == 3
    (alone,) = compare([reference[0], reference[2]], {"x": [other[0], other[2]]}, draws=500)
    assert partly.difference == alone.difference
    p_values = np.array([difference_of(one).p_value for one in (partly, whole)])
    np.testing.assert_array_equal([partly.adjusted, whole.adjusted], holm(p_values))


def test_methods_without_a_common_run_are_reported() -> None:
    reference = [a_crash([0, 1]), *runs_of(1.0, seeds=1)]
    gone, there = compare(
        reference,
        {"gone": [runs_of(1.0, seeds=1)[0], a_crash([0])], "there": runs_of(2.0, seeds=2)},
        draws=200,
    )
    assert gone.note == "not compared: no run in which both methods have predictions"
    assert (gone.seeds, gone.entities, gone.difference, gone.adjusted) == (0, 0, None, None)
    assert there.adjusted == difference_of(there).p_value


def test_infinite_log_losses_are_reported_and_do_not_affect_others() -> None:
    reference = runs_of(1.0, entities=30)
    labels = reference[0].labels
    ruled_out = [a_run(np.eye(3)[(labels + (np.arange(30) < 4)) % 3], labels.tolist())] * 3
    others = {"sure": ruled_out, "sharp": runs_of(2.0, entities=30)}
    sure, sharp = compare(reference, others, draws=200)
    assert sure.note == (
        "not compared: log losses are infinite, because labels were given probability 0, 0 by the "
        "reference and 12 by this method"
    )
    assert (sure.difference, sure.adjusted, sure.seeds) == (None, None, 3)
    assert sharp.adjusted == difference_of(sharp).p_value
    assert all(one.difference for one in compare(reference, others, "brier", draws=200))
    (turned,) = compare(ruled_out, {"fine": reference}, draws=200)
    assert turned.note is not None
    assert "12 by the reference and 0 by this method" in turned.note


@pytest.mark.parametrize(
    "changes",
    [
        {"entity_ids": own_entities("x", 120)},
        {"values": ("a", "b", "c")},
        {"data": 5},
        {"entities": 119},
    ],
    ids=["entities", "values", "labels", "size"],
)
def test_other_entities_cannot_be_paired(changes) -> None:
    with pytest.raises(
        EvidenceError, match=r"other, run 1: its entities, labels or values are not"
    ):
        compare(runs_of(1.0), {"other": runs_of(1.0, **changes)}, draws=10)


def test_different_numbers_of_runs_are_refused() -> None:
    with pytest.raises(EvidenceError, match="other: 2 runs cannot be paired with 3"):
        compare(runs_of(1.0), {"other": runs_of(1.0, seeds=2)})


def test_settings_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="measure: unknown measure"):
        compare(runs_of(1.0), {}, "accuracy")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="draws: must be 1"):
        compare(runs_of(1.0), {"other": runs_of(2.0)}, draws=0)
    with pytest.raises(ConfigError, match="level: must be"):
        compare(runs_of(1.0), {"other": runs_of(2.0)}, level=0.0)


def test_a_method_without_others_has_no_comparisons() -> None:
    assert compare(runs_of(1.0), {}) == []
