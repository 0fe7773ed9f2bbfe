"""Adding a predicate to a trained model: only its embedding and head are trained."""

from __future__ import annotations

from dataclasses import replace

from lpf.datasets import require_trainable
from lpf.errors import TrainingError
from lpf.model.artefact import Artefact
from lpf.model.layout import CLAIM, FAMILIARITY, HELD_OUT, add_predicate
from lpf.model.runtime import Runtime
from lpf.training.assembly import Trained, assemble, most_independent
from lpf.training.claim_alone import compared_with_claims, fit_claims_alone, with_claims_alone
from lpf.training.config import TrainingConfig
from lpf.training.examples import Examples
from lpf.training.fitting import (
    calibrated,
    fit_predicate,
    refuse_unstable,
    score_splits,
    with_head_familiarity,
)
from lpf.training.held_out import with_held_out
from lpf.training.history import SeedHistory
from lpf.training.material import heads_of, labelled_with, labels_of, make_material
from lpf.training.stage_one import EpochCallback, StageOne, best_tensors, histories_of
from lpf.training.threads import one_thread
from lpf.training.training_warnings import data_warnings, size_warnings, unlearned_warnings


@one_thread()
def train_head(
    artefact: Artefact,
    examples: Examples,
    predicate: str,
    config: TrainingConfig,
    on_epoch: EpochCallback | None = None,
) -> Trained:
    """Add a head for ``predicate`` to the model. Its other answers stay the same, bit for bit.
    TrainingError if it has that head already or is linear."""
    if predicate in [head.name for head in artefact.config.predicates]:
        raise TrainingError(
            f"model {artefact.version} answers {predicate!r} already. Nothing was trained; train a "
            "new model instead."
        )
    if not artefact.config.encoder.hidden:
        raise TrainingError(
            f"model {artefact.version} is linear, so it has no latent code that a head for "
            f"{predicate!r} could share. Nothing was trained; train all predicates together."
        )
    require_trainable(labelled_with(examples.dataset, predicate), predicate)
    runtime, histories = _train(artefact, examples, predicate, config, on_epoch)
    refuse_unstable(runtime, (predicate,), examples)
    runtime = _with_own_texts(runtime, examples, predicate, config)
    validation = examples.split("validation")
    assert validation is not None  # a data set without it was refused
    fitted = {predicate: fit_predicate(runtime, examples.dataset.schema[predicate], validation)}
    runtime = with_held_out(calibrated(runtime, fitted), {predicate: fitted[predicate].held_out})
    runtime = _with_earlier_fits(artefact, runtime)
    claims = fit_claims_alone(examples, runtime.config.reader_id, (predicate,), everything=False)
    runtime = with_claims_alone(runtime, claims)
    scores = tuple(
        compared_with_claims(one, claims, examples)
        for one in score_splits(runtime, examples, (predicate,), ("spn",))
    )
    trained = assemble(
        runtime,
        examples.dataset,
        config,
        histories=histories,
        fitted=fitted,
        scores=scores,
        warnings=[
            *unlearned_warnings(most_independent(scores)),
            *data_warnings(examples.dataset),
            *size_warnings(predicate, len(validation.dataset)),
        ],
    )
    card = replace(
        trained.card,
        name=f"{artefact.card.name} + {predicate}",
        notes=(f"a head added to model {artefact.version}", *trained.card.notes),
    )
    return replace(trained, card=card, tuned=artefact.tuned)


def _train(
    artefact: Artefact,
    examples: Examples,
    predicate: str,
    config: TrainingConfig,
    on_epoch: EpochCallback | None,
) -> tuple[Runtime, tuple[SeedHistory, ...]]:
    dataset, seeds = examples.dataset, artefact.config.seeds
    labels = labels_of(dataset, [predicate])
    train = examples.rows(dataset.positions("train"))
    (head,) = heads_of(dataset, [predicate], train, config)
    known = {
        name: one
        for name, one in artefact.tensors.items()
        if not name.startswith((FAMILIARITY, CLAIM, HELD_OUT))
    }
    networks = replace(
        artefact.config, familiarity=None, head_familiarity={}, claim_alone=(), held_out={}
    )
    model, tensors = add_predicate(networks, known, head, seeds)
    validation = examples.rows(dataset.positions("validation"))
    material = make_material(
        examples.features, labels, [train] * len(seeds), [validation] * len(seeds), config
    )
    stage = StageOne(model, material, config, seeds)
    state = stage.begin(tensors, [name for name in tensors if name not in artefact.tensors])
    stage.run(state, on_epoch)
    return Runtime(model, best_tensors(state)), histories_of(state)


def _with_own_texts(
    runtime: Runtime, examples: Examples, predicate: str, config: TrainingConfig
) -> Runtime:
    """The new head was trained on other texts than the model: it gets a familiarity of its own,
    before it is calibrated. With ``unfamiliar`` "full", every text has its full weight."""
    if config.unfamiliar == "less":
        return with_head_familiarity(runtime, examples, predicate)
    return Runtime(replace(runtime.config, head_familiarity={predicate: None}), runtime.tensors)


def _with_earlier_fits(artefact: Artefact, runtime: Runtime) -> Runtime:
    """Put back the parameters that were fitted for the other predicates, and their familiarity."""
    before, now = artefact.config, runtime.config
    config = replace(
        now,
        calibration={**before.calibration, **now.calibration},
        learned_temperature={**before.learned_temperature, **now.learned_temperature},
        calibrated_on={**before.calibrated_on, **now.calibrated_on},
        min_credibility={**before.min_credibility, **now.min_credibility},
        familiarity=before.familiarity,
        claim_alone=before.claim_alone,
        head_familiarity={**before.head_familiarity, **now.head_familiarity},
        held_out={**before.held_out, **now.held_out},
    )
    return Runtime(config, {**artefact.tensors, **runtime.tensors})
