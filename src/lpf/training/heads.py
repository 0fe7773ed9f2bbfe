"""A predicate added to a trained model: its embedding and head are trained, nothing else moves."""

from __future__ import annotations

from dataclasses import replace

from lpf.datasets import require_trainable
from lpf.errors import TrainingError
from lpf.model.artefact import Artefact
from lpf.model.layout import add_predicate
from lpf.model.runtime import Runtime
from lpf.training.assembly import Trained, make_card
from lpf.training.config import TrainingConfig
from lpf.training.examples import Examples
from lpf.training.fitting import HELD_OUT, Scores, calibrated, evaluate, fit_predicate
from lpf.training.history import SeedHistory
from lpf.training.material import heads_of, labelled_with, labels_of, make_material
from lpf.training.search import Watcher
from lpf.training.stage_one import StageOne, StageOneState, best_tensors, histories_of
from lpf.training.training_warnings import data_cautions, size_cautions, unlearned_cautions


def train_head(
    artefact: Artefact,
    examples: Examples,
    predicate: str,
    config: TrainingConfig,
    watcher: Watcher | None = None,
) -> Trained:
    """The model with a head for ``predicate`` beside those it has; their answers stay the same to
    the last bit. TrainingError where it has that head already."""
    known = [head.name for head in artefact.config.predicates]
    if predicate in known:
        raise TrainingError(
            f"model {artefact.version}: answers {predicate!r} already. Nothing was trained; train "
            "a model of its own instead."
        )
    if not artefact.config.encoder.hidden:
        raise TrainingError(
            f"model {artefact.version}: reads linearly, so it has no code that a head for "
            f"{predicate!r} could share. Nothing was trained; train all predicates together."
        )
    require_trainable(labelled_with(examples.dataset, predicate), predicate)
    runtime, histories = _trained(artefact, examples, predicate, config, watcher)
    validation = examples.split("validation")
    assert validation is not None  # a data set without was refused
    schema = examples.dataset.schema
    fitted = {predicate: fit_predicate(runtime, schema[predicate], validation)}
    runtime = _with_earlier_fits(artefact, calibrated(runtime, fitted))
    scores = _scores(runtime, examples, predicate)
    cautions = [
        *unlearned_cautions(scores),
        *data_cautions(examples.dataset),
        *size_cautions(predicate, len(validation.dataset)),
    ]
    card = make_card(
        f"{artefact.card.name} + {predicate}",
        examples.dataset,
        config,
        histories,
        runtime,
        fitted,
        scores,
        cautions,
    )
    card = replace(card, notes=(f"a head added to model {artefact.version}", *card.notes))
    return Trained(
        runtime.config, runtime.tensors, card, histories, (), fitted, scores, tuple(cautions)
    )


def _trained(
    artefact: Artefact,
    examples: Examples,
    predicate: str,
    config: TrainingConfig,
    watcher: Watcher | None,
) -> tuple[Runtime, tuple[SeedHistory, ...]]:
    dataset, seeds = examples.dataset, artefact.config.seeds
    labels = labels_of(dataset, [predicate])
    train = examples.rows(dataset.positions("train"))
    (head,) = heads_of(dataset, [predicate], train, config)
    model, tensors = add_predicate(artefact.config, artefact.tensors, head, seeds)
    validation = examples.rows(dataset.positions("validation"))
    material = make_material(
        examples.features, labels, [train] * len(seeds), [validation] * len(seeds), config
    )
    stage = StageOne(model, material, config, seeds)
    state = stage.begin(tensors, [name for name in tensors if name not in artefact.tensors])
    watch = None
    if watcher is not None:
        told = watcher  # bound here, so that it cannot be None below

        def watch(now: StageOneState) -> None:
            told(now.epoch, config.max_epochs, now)

    stage.run(state, watch)
    return Runtime(model, best_tensors(state)), histories_of(state)


def _with_earlier_fits(artefact: Artefact, runtime: Runtime) -> Runtime:
    """What was fitted for the other predicates stays."""
    before, now = artefact.config, runtime.config
    config = replace(
        now,
        calibration={**before.calibration, **now.calibration},
        learned_temperature={**before.learned_temperature, **now.learned_temperature},
        calibrated_on={**before.calibrated_on, **now.calibrated_on},
    )
    return Runtime(config, runtime.tensors)


def _scores(runtime: Runtime, examples: Examples, predicate: str) -> dict[str, dict[str, Scores]]:
    schema = examples.dataset.schema
    parts = {split: examples.split(split) for split in HELD_OUT}
    return {
        f"{split}/spn": {predicate: evaluate(runtime, schema, predicate, part)}
        for split, part in parts.items()
        if part is not None
    }
