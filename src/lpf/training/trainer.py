"""From a labelled data set to a model: both stages, the search over seeds, the fits, the card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from lpf.datasets import Dataset, Split, require_trainable
from lpf.model.config import ModelConfig
from lpf.model.layout import fresh_tensors
from lpf.model.runtime import Runtime
from lpf.schema import Schema
from lpf.training.assembly import Trained, choose, make_card, model_config
from lpf.training.config import SEVEN_SEEDS, TrainingConfig, check_seeds
from lpf.training.examples import Examples
from lpf.training.fitting import (
    HELD_OUT,
    FittedParameters,
    Scores,
    answers,
    calibrated,
    evaluate,
    fit_predicate,
)
from lpf.training.linear import ReadingChoice, choose_reading
from lpf.training.material import Material, Rows, heads_of, labelled_with, labels_of, make_material
from lpf.training.search import SearchResult, Watcher, search_id, search_seeds
from lpf.training.stage_one import StageOne
from lpf.training.stage_two import AggregatorHistory, EntityRows, StageTwo
from lpf.training.training_warnings import (
    answer_cautions,
    balancing_may_help,
    data_cautions,
    prior_cautions,
    reading_cautions,
    seed_cautions,
    size_cautions,
    unlearned_cautions,
)
from lpf.types import Float32Array, QueryOptions, Variant

Telling = Callable[[str], None]


@dataclass(frozen=True)
class Trainer:
    """One training run. ``folder`` keeps searches; None keeps nothing. ``tell`` is told what is
    done at the moment, ``watcher`` the epochs of the search."""

    examples: Examples
    reader_id: str
    predicates: tuple[str, ...]
    config: TrainingConfig = field(default_factory=TrainingConfig)
    seeds: tuple[int, ...] = SEVEN_SEEDS
    folder: Path | None = None
    watcher: Watcher | None = None
    tell: Telling | None = None

    @property
    def dataset(self) -> Dataset:
        return self.examples.dataset

    @property
    def schema(self) -> Schema:
        return self.dataset.schema

    def run(self, name: str | None = None) -> Trained:
        """Everything. Nothing is written but what ``folder`` keeps of the search."""
        check_seeds(self.seeds)
        for predicate in self.predicates:
            require_trainable(labelled_with(self.dataset, predicate), predicate)
        model, found = self._search()
        self._say("choosing the best seeds")
        best = Runtime(*choose(model, found.tensors, found.order[: self.config.members]))
        best, choice = self._better_reading(best)
        chosen, tensors, aggregator = self._second_stage(best.config, best.tensors)
        self._say("fitting on validation entities")
        runtime, fitted = self._fitted(Runtime(chosen, tensors))
        return self._finished(name, found, runtime, aggregator, fitted, choice)

    def _search(self) -> tuple[ModelConfig, SearchResult]:
        self._say("training all seeds together")
        labels = labels_of(self.dataset, self.predicates)
        train = self._rows("train")
        heads = heads_of(self.dataset, self.predicates, train, self.config)
        width = self.examples.features.shape[1]
        model = model_config(heads, self.config, self.seeds, self.reader_id, width)
        material = self._material(labels, train)
        stage = StageOne(model, material, self.config, self.seeds)
        return model, search_seeds(stage, self._search_folder(), self.watcher)

    def _material(self, labels: Mapping[str, Rows], train: Rows) -> Material:
        count = len(self.seeds)
        validation = [self._rows("validation")] * count
        return make_material(
            self.examples.features, labels, [train] * count, validation, self.config
        )

    def _search_folder(self) -> Path | None:
        if self.folder is None:
            return None
        plain = {
            key: value
            for key, value in self.config.to_dict().items()
            if key not in ("members", "aggregator", "stage_two", "model")
        }
        return self.folder / search_id(
            data=self.dataset.digest,
            reader=self.reader_id,
            predicates=list(self.predicates),
            config=plain,
            seeds=list(self.seeds),
        )

    def _better_reading(self, networks: Runtime) -> tuple[Runtime, ReadingChoice | None]:
        if self.config.model == "networks":
            return networks, None
        self._say("comparing with a linear reading")
        train, validation = self.examples.split("train"), self.examples.split("validation")
        assert train is not None  # a data set without was refused
        assert validation is not None
        return choose_reading(networks, train, validation, self.predicates, networks.config.seeds)

    def _second_stage(
        self, model: ModelConfig, tensors: Mapping[str, Float32Array]
    ) -> tuple[ModelConfig, Mapping[str, Float32Array], AggregatorHistory]:
        if self.config.aggregator is None:
            return model, tensors, ()
        self._say("training the learned aggregator")
        model = replace(model, aggregator=self.config.aggregator)
        drawn = fresh_tensors(model, model.seeds)
        whole = {name: tensors.get(name, drawn[name]) for name in drawn}
        stage = StageTwo(model, self.config.stage_two, self.examples.features)
        train, validation = self._entity_rows("train"), self._entity_rows("validation")
        trained, history = stage.run(whole, train, validation)
        return model, trained, history

    def _entity_rows(self, split: Split) -> dict[str, EntityRows]:
        entities = self.dataset.positions(split)
        top_k = self.config.stage_two.top_k
        return {
            name: EntityRows.of(self.dataset.offsets, self.dataset.labels(name), entities, top_k)
            for name in self.predicates
        }

    def _fitted(self, runtime: Runtime) -> tuple[Runtime, dict[str, FittedParameters]]:
        validation = self.examples.split("validation")
        assert validation is not None  # a data set without was refused
        fitted = {
            name: fit_predicate(runtime, self.schema[name], validation) for name in self.predicates
        }
        return calibrated(runtime, fitted), fitted

    def _finished(
        self,
        name: str | None,
        found: SearchResult,
        runtime: Runtime,
        aggregator: AggregatorHistory,
        fitted: Mapping[str, FittedParameters],
        choice: ReadingChoice | None,
    ) -> Trained:
        scores = self._scores(runtime)
        cautions = (
            *unlearned_cautions(scores),
            *reading_cautions(choice),
            *self._cautions(found, runtime, fitted, choice),
        )
        card = make_card(
            name or self.dataset.name,
            self.dataset,
            self.config,
            found.histories,
            runtime,
            fitted,
            scores,
            cautions,
            choice,
        )
        return Trained(
            runtime.config,
            runtime.tensors,
            card,
            found.histories,
            aggregator,
            fitted,
            scores,
            cautions,
            choice,
        )

    def _scores(self, runtime: Runtime) -> dict[str, dict[str, Scores]]:
        variants: tuple[Variant, ...] = (
            ("spn",) if runtime.config.aggregator is None else ("spn", "learned")
        )
        scores: dict[str, dict[str, Scores]] = {}
        for split in HELD_OUT:
            examples = self.examples.split(split)
            if examples is None:
                continue
            for variant in variants:
                scores[f"{split}/{variant}"] = {
                    name: evaluate(runtime, self.schema, name, examples, variant)
                    for name in self.predicates
                }
        return scores

    def _cautions(
        self,
        found: SearchResult,
        runtime: Runtime,
        fitted: Mapping[str, FittedParameters],
        choice: ReadingChoice | None,
    ) -> list[str]:
        linear = choice is not None and choice.is_linear
        cautions = list(data_cautions(self.dataset))
        if not linear:  # of networks that do not answer, nobody need know
            cautions += seed_cautions(found.histories, self.config.deterministic)
        validation = self.examples.split("validation")
        assert validation is not None  # as above
        for name in self.predicates:
            predicate = self.schema[name]
            labels = validation.dataset.labels(name)
            given = answers(runtime, self.schema, name, validation, QueryOptions())
            known = labels >= 0
            train = self.dataset.labels(name)[self.dataset.positions("train")]
            helps = not linear and balancing_may_help(train, self.config.balance)
            cautions += answer_cautions(predicate, given[known], labels[known], helps)
            cautions += size_cautions(name, fitted[name].robust.entities)
            cautions += prior_cautions(predicate, train)
        return cautions

    def _rows(self, split: Split) -> Rows:
        return self.examples.rows(self.dataset.positions(split))

    def _say(self, what: str) -> None:
        if self.tell is not None:
            self.tell(what)
