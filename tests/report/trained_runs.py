"""Training runs built by hand, so that reports can be tested without training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from lpf.combine.calibration import CalibrationFit
from lpf.combine.robust import RobustParameters
from lpf.datasets import Dataset, DatasetEntity, DatasetItem, assign_splits
from lpf.model.artefact import ModelCard
from lpf.model.config import AggregatorConfig, ModelConfig, PredicateHead
from lpf.schema import Predicate, Schema
from lpf.training import StageTwoConfig, Trained, Trainer, TrainingConfig, make_examples
from lpf.training.fitting import FittedParameters, HeldOutScores, Scores
from lpf.training.history import Epoch, SeedHistory, ranked
from lpf.training.stage_two import AggregatorEpoch, AggregatorHistory

BETA = 0.01


def history(seed: int, epochs: int = 6, converged: bool = True) -> SeedHistory:
    """Losses fall until the last epoch but one."""
    generator = np.random.default_rng(seed)
    falling = 1.0 / (1.0 + np.arange(epochs)) + 0.1 * generator.random()
    falling[-1] += 0.2 if epochs > 1 else 0.0
    kl, accuracy = 4.0 + generator.random(), 0.6 + 0.3 * generator.random()
    made = tuple(
        Epoch(
            loss + 0.1,
            loss + 0.1 - BETA * kl,
            kl,
            accuracy - 0.05,
            loss,
            loss - BETA * kl,
            kl,
            accuracy,
            0.5,
        )
        for loss in falling.tolist()
    )
    return SeedHistory(seed, made, converged)


def trained(
    seeds: Sequence[int] = (1, 2, 3),
    *,
    members: int = 2,
    aggregator: bool = True,
    epochs: int = 6,
    predicate: str = "level",
    warnings: tuple[str, ...] = (),
) -> Trained:
    histories = tuple(history(seed, epochs, converged=seed % 2 == 1) for seed in seeds)
    best = [histories[place].seed for place in ranked(histories)][:members]
    config = ModelConfig(
        (PredicateHead(predicate, ("low", "high"), (0.4, 0.6)),),
        aggregator=AggregatorConfig() if aggregator else None,
        members=len(best),
        seeds=tuple(best),
        reader_id="hash",
    )
    fit = CalibrationFit(RobustParameters(1.2, fitted=True), 60, 0.61, 0.52, 0.55, converged=True)
    class_shares = (0.68, 0.6, 0.38, 0.3, 0.45, True)  # NLL, accuracy, gain with interval, beaten
    scores = {predicate: Scores(60, 0.9, 0.88, 0.3, 0.15, 0.04, 0.06, 0.69, *class_shares)}
    held_out = [HeldOutScores("validation", "spn", scores), HeldOutScores("test", "spn", scores)]
    if aggregator:
        held_out.append(HeldOutScores("test", "learned", scores))
    notes = ("beta 0.01", *(f"caution: {warning}" for warning in warnings))
    return Trained(
        config,
        {},
        ModelCard("made up", "made up: 200 entities.", "Trying.", "Using.", {}, notes),
        histories,
        _second_stage(len(best)) if aggregator else (),
        {predicate: FittedParameters(fit, 0.9 if aggregator else None)},
        tuple(held_out),
        warnings,
    )


def with_an_undefined_epoch(run: Trained) -> Trained:
    """The same run with a last epoch whose losses are no numbers."""
    first, *others = run.histories
    broken = replace(first.epochs[-1], train_loss=float("nan"), train_kl=float("inf"))
    return replace(run, histories=(replace(first, epochs=(*first.epochs[:-1], broken)), *others))


def really_trained() -> Trained:
    """Two seeds, two epochs, forty entities: bad, but from the trainer."""
    generator = np.random.default_rng(0)
    labels = np.tile([0, 1], 20)
    entities = tuple(
        DatasetEntity(f"C{place}", {"level": ("low", "high")[label]}, (item(place),))
        for place, label in enumerate(labels.tolist())
    )
    schema = Schema((Predicate("level", ("low", "high")),))
    dataset = assign_splits(Dataset("small", schema, entities), "level", seed=1)
    features = (labels[:, None] + generator.standard_normal((40, 6))).astype(np.float32)
    config = TrainingConfig(
        hidden=(8,), latent_width=4, max_epochs=2, members=1, stage_two=StageTwoConfig(epochs=2)
    )
    examples = make_examples(dataset, features, None)
    return Trainer(examples, "hash", ("level",), config, (11, 22)).run()


def item(place: int) -> DatasetItem:
    return DatasetItem(f"C{place}_E1", f"text {place}", credibility=0.8)


def _second_stage(members: int) -> AggregatorHistory:
    return tuple(
        tuple(AggregatorEpoch(0.5 - 0.01 * n, 0.6 - 0.01 * n, 0.8) for n in range(4))
        for _ in range(members)
    )
