"""``evaluate``: methods on one data set, in its own splits or in grouped folds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from lpf.baselines import CLAIM_ONLY, TRANSFORMER, ZERO_LABEL
from lpf.baselines.item_models import SEARCH, drawn_seeds
from lpf.baselines.language_models import EndpointConfig
from lpf.baselines.transformer import require_loadable
from lpf.baselines.transformer_checkpoints import checkpoint_settings
from lpf.datasets import Dataset
from lpf.evaluation.data_checks import (
    few_groups,
    missing_claims,
    require_enough,
    require_field,
    require_groups,
    require_learnable,
    require_whole_splits,
    unmatched_verdicts,
    what_is_shared,
)
from lpf.evaluation.evaluation import Evaluation
from lpf.evaluation.language_model_run import run_language_model
from lpf.evaluation.method_names import CHOSEN
from lpf.evaluation.own_method import is_own, own_settings
from lpf.evaluation.plan import (
    DEFAULT_METHODS,
    DEFAULT_SEEDS,
    EvaluationPlan,
    chosen_methods,
    chosen_seeds,
)
from lpf.evaluation.result_store import ResultStore
from lpf.evaluation.runner import Progress, Runner, default_cache
from lpf.evaluation.spec_datasets import (
    DataSources,
    dataset_digest,
    file_dataset,
    has_own_test,
    labelled_dataset,
    read_with_digest,
)
from lpf.evaluation.specs import Cell, EvalSpec, FileData, Settings, TrainSpec
from lpf.evaluation.summaries import pooled
from lpf.ingest import FileOptions
from lpf.model.zero_label import without_counterpart
from lpf.reading import stance_is_installed
from lpf.training.config import DEFAULT_BUDGET

NETWORKS = 7  # seeds of LPF's networks per repetition


def evaluate(
    dataset: str | Path | Dataset,
    *,
    methods: object = None,
    seeds: int | Sequence[int] = DEFAULT_SEEDS,
    predicate: str | None = None,
    folds: int = 5,
    resplit: bool = False,
    protected: str | None = None,
    model: str | None = None,
    language_model: EndpointConfig | None = None,
    workers: int = 0,
    progress: Progress | None = None,
    cache: str | Path | None = None,
    options: FileOptions | None = None,
    budget: float = DEFAULT_BUDGET,
) -> Evaluation:
    """Compare methods on one data set: accuracy, calibration and speed.

    The test entities of the data set are answered; without any, every entity is answered once, in
    ``folds`` that keep groups together. All methods get the same features, training entities and
    validation entities. Every result is stored in ``cache``: an interrupted evaluation continues,
    and a repeated one computes nothing.

    Args:
        dataset: A JSONL file (see docs/datasets.md), a table with labelled items (CSV, Excel,
            Parquet) or a ``Dataset``.
        methods: Names, ``"all"``, ``"package.module:Name"``, classes or unfitted estimators with
            ``fit``, ``predict_proba`` and ``classes_``, or pairs (name, estimator). One of these or
            a list. By default the quick methods.
        seeds: Number of repetitions, or their seeds.
        predicate: What to predict; by default the first labelled predicate.
        folds: Number of folds if the data set has no test entities.
        resplit: Ignore the splits of the data set and use folds.
        protected: A field of the entities by which results are also reported.
        model: Transformer that the method ``transformer`` fine-tunes, a folder or a name on the
            hub. The method is added.
        language_model: Endpoint of a language model that answers up to ``limit`` test entities.
            Their texts are sent there.
        workers: Number of processes; 0 is one per core.
        progress: Called with (done, total, description of the last result).
        cache: Folder for results, features and models; by default the user's cache folder.
        options: How to read a table, where its content does not say.
        budget: How many seconds the training of ``lpf_chosen`` may take in each fold.

    Raises:
        ConfigError: An argument is out of range, or names something unknown.
        DatasetError: The data cannot be evaluated. Nothing was run.
    """
    names, estimators = chosen_methods(methods)
    plan = EvaluationPlan(
        dataset if isinstance(dataset, Dataset) else Path(dataset),
        names,
        chosen_seeds(seeds),
        folds=folds,
        resplit=resplit,
        predicate=predicate,
        protected=protected,
        model=model,
        estimators=estimators,
        options=options or FileOptions(),
        budget=budget,
    )
    evaluator = Evaluator.of(plan)
    folder = default_cache() if cache is None else Path(cache)
    runner = Runner(
        folder, workers, progress, {evaluator.digest: evaluator.source}, plan.estimators
    )
    evaluator.require_model(runner.store)
    runner.run(evaluator.cells())
    evaluation = evaluator.evaluation(runner.store)
    if language_model is None:
        return evaluation
    run = run_language_model(evaluator, evaluation, language_model, folder)
    return replace(evaluation, language_model=run)


@dataclass(frozen=True)
class Evaluator:
    """A plan with its data: the cells it needs, and the evaluation that their results give.

    ``source`` is the data set as it was read, ``dataset`` its entities that have a label of
    ``predicate``, ``digest`` identifies the content of ``source``.
    """

    plan: EvaluationPlan
    source: Dataset
    dataset: Dataset
    predicate: str
    digest: str

    @classmethod
    def of(cls, plan: EvaluationPlan) -> Evaluator:
        """Reads the data, once. DatasetError if it cannot be evaluated; nothing is run before."""
        if isinstance(plan.data, Dataset):
            plan.options.refuse("a data set in memory")
            source = plan.data.with_claim(plan.data.schema.claim)
            digest = dataset_digest(source)
        else:
            source, digest = read_with_digest(plan.data, plan.options)
        dataset, predicate = labelled_dataset(source, plan.predicate)
        where = plan.data_name
        require_enough(where, dataset, predicate)
        require_field(dataset, plan.protected)
        evaluator = cls(plan, source, dataset, predicate, digest)
        if not plan.resplit:
            require_whole_splits(where, dataset)
        require_groups(where, dataset, evaluator.folds)
        in_folds = evaluator.folds > 0
        require_learnable(where, evaluator.fold_datasets, predicate, in_folds=in_folds)
        return evaluator

    @property
    def folds(self) -> int:
        """0 if the data set's own splits are used."""
        own = has_own_test(self.dataset) and not self.plan.resplit
        return 0 if own else self.plan.folds

    @cached_property
    def fold_datasets(self) -> tuple[Dataset, ...]:
        """The data set in the splits of each fold; one data set if it has its own splits."""
        sources = DataSources({self.digest: self.source})
        return tuple(file_dataset(data, sources)[0] for data in self.fold_data())

    def fold_data(self) -> list[FileData]:
        folds, data = self.folds, self.plan.data
        return [
            FileData(
                data.name if isinstance(data, Dataset) else str(data.resolve()),
                self.digest,
                self.plan.predicate,
                folds,
                fold,
                self.plan.protected,
            )
            for fold in range(max(folds, 1))
        ]

    def cells(self) -> list[Cell]:
        return [
            cell
            for method in self.methods
            for seed in self.plan.seeds
            for cell in self.cells_of(method, seed)
        ]

    def cells_of(self, method: str, seed: int) -> list[Cell]:
        """One per fold. ``seed`` is that of one repetition."""
        networks = drawn_seeds(seed, SEARCH, NETWORKS)
        return [
            Cell(
                TrainSpec(data, seed=seed, seeds=networks),
                EvalSpec(),
                method,
                self._settings[method],
            )
            for data in self.fold_data()
        ]

    @property
    def methods(self) -> tuple[str, ...]:
        """Those of the plan, ``transformer`` if a model is named, ``claim_only`` if entities have
        claims and, among the default methods, ``zero_label`` if their values are verdicts."""
        claimed = all(entity.claim is not None for entity in self.dataset)
        is_default = self.plan.methods == DEFAULT_METHODS
        answered = not without_counterpart(self._values) and stance_is_installed()
        added = {
            TRANSFORMER: self.plan.model is not None,
            CLAIM_ONLY: claimed,
            ZERO_LABEL: claimed and is_default and answered,
        }
        return tuple(dict.fromkeys((*self.plan.methods, *(name for name in added if added[name]))))

    @property
    def _values(self) -> tuple[str, ...]:
        return self.dataset.schema[self.predicate].values

    def require_model(self, store: ResultStore) -> None:
        """ConfigError if the named transformer cannot be loaded and some of its results are not
        stored yet."""
        cells = [cell for cell in self.cells() if cell.method == TRANSFORMER]
        if self.plan.model is not None and store.missing(cells):
            require_loadable(self.plan.model)

    @cached_property
    def _settings(self) -> Mapping[str, Settings]:
        """Computed once, so that results are still found if a source file is edited during the
        run."""
        return {name: self._settings_of(name) for name in self.methods}

    def _settings_of(self, method: str) -> Settings:
        if method in self.plan.estimators or is_own(method):
            return own_settings(method, self.plan.estimators.get(method))
        if method == TRANSFORMER and self.plan.model is not None:
            return checkpoint_settings(self.plan.model)
        if method == CHOSEN and self.plan.budget != DEFAULT_BUDGET:
            return (("budget", self.plan.budget),)
        return ()

    def evaluation(self, store: ResultStore) -> Evaluation:
        """The evaluation, from stored results; StorageError if one is missing."""
        runs = {
            method: [
                pooled([store.load(cell) for cell in self.cells_of(method, seed)])
                for seed in self.plan.seeds
            ]
            for method in self.methods
        }
        in_folds = self.folds > 0
        shared, unshared_ids = what_is_shared(self.fold_datasets, in_folds=in_folds)
        warnings = (
            *self.dataset.exclusions,
            *shared,
            *few_groups(self.fold_datasets),
            *missing_claims(self.dataset),
            *unmatched_verdicts(self.dataset, self._values),
        )
        return Evaluation(
            self.plan, self.dataset, self.predicate, self.folds, warnings, runs, unshared_ids
        )
