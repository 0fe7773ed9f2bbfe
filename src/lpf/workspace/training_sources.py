"""Training data: the file of a data set, a synthetic domain, or the workspace's own evidence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from lpf.circuits import CompiledCircuit
from lpf.datasets import Dataset, assign_splits, require_trainable
from lpf.errors import ConfigError, DatasetError
from lpf.index.copies import checked_similarity
from lpf.ingest import FileOptions, read_labelled
from lpf.model.artefact import Artefact
from lpf.reading import Reader
from lpf.schema import Schema
from lpf.workspace.circuit import with_learned_priors
from lpf.workspace.training_data import Progress, own_examples
from lpf.workspace.wiring import Wiring

if TYPE_CHECKING:
    from lpf.domains import Domain
    from lpf.reading import Reader
    from lpf.training import Examples

SPLIT_SEED = 42
SEARCHES, FEATURES = "searches", "features"
DECLARATION = ".toml"


@dataclass(frozen=True)
class TrainingSource:
    """``what`` is a file, the name of a domain, or None for the workspace's own labelled evidence.
    ``predicates`` are those to train on; empty means all that are labelled. ``preset`` and
    ``data_seed`` generate a domain. ``resplit`` ignores the splits of a file. ``options`` say how
    to read a table."""

    what: str | Path | None = None
    predicates: tuple[str, ...] = ()
    preset: str = "paper"
    data_seed: int = 42
    resplit: bool = False
    options: FileOptions = field(default_factory=FileOptions)


@dataclass(frozen=True)
class PreparedData:
    """Examples with splits, or without if ``few``: there are too few entities to hold some back.
    ``reader`` made their features."""

    examples: Examples
    predicates: tuple[str, ...]
    few: bool
    reader: Reader

    def with_priors_of(self, circuit: CompiledCircuit | None) -> PreparedData:
        """The same data, with the priors of a learned circuit in the schema."""
        dataset = self.examples.dataset
        dataset = replace(dataset, schema=with_learned_priors(dataset.schema, circuit))
        return replace(self, examples=replace(self.examples, dataset=dataset))


def prepare(
    workspace: Wiring,
    source: TrainingSource,
    progress: Progress | None = None,
    onto: Artefact | None = None,
) -> PreparedData:
    """Load the data and read its texts: by the reader of the model ``onto``, or (None) as the data
    and the settings say. DatasetError, TrainingError or ConfigError if it cannot be trained on;
    this is checked before any text of a file or domain is read."""
    if source.what is None:
        source.options.refuse("the workspace's own evidence")
        examples, reader = own_examples(workspace, source.predicates, progress, onto)
        dataset, predicates, few = _in_splits(examples.dataset, source.predicates)
        return PreparedData(replace(examples, dataset=dataset), predicates, few, reader)
    dataset, predicates, few = _in_splits(labelled_data(workspace, source), source.predicates)
    has_claims = any(entity.claim is not None for entity in dataset)
    reader = workspace.reader_for_training(has_claims, onto)
    return PreparedData(_read(workspace, dataset, reader, progress), predicates, few, reader)


def labelled_data(workspace: Wiring, source: TrainingSource) -> Dataset:
    """The data set of a file or a domain, under the workspace's schema."""
    assert source.what is not None  # prepare handles the workspace's own evidence
    for name in source.predicates:
        workspace.schema[name]
    path = Path(source.what)
    if path.is_file() and path.suffix != DECLARATION:
        only = source.predicates[0] if len(source.predicates) == 1 else None
        dataset = read_labelled(
            path, schema=workspace.schema, predicate=only, options=source.options
        )
        dataset = dataset.with_claim(workspace.default_claim())
        return dataset.in_splits([None] * len(dataset)) if source.resplit else dataset
    source.options.refuse("a domain, which is generated")
    if source.resplit:
        raise ConfigError(
            "resplit: a domain is generated with splits, which cannot be changed. Nothing was "
            "trained; leave resplit out."
        )
    return _generated(workspace.schema, source)


def require_domain(schema: Schema, domain: Domain, *names: str) -> None:
    """ConfigError unless the schema has the domain's predicates ``names`` with the same values."""
    own = domain.schema()
    for name in names:
        if name not in schema or schema[name].values != own[name].values:
            known = {predicate.name: list(predicate.values) for predicate in schema}
            raise ConfigError(
                f"domain {domain.name!r} needs the predicate {name!r} with the values "
                f"{list(own[name].values)}, but this workspace's schema has {known}. Nothing was "
                f"done. Create a workspace for it: lpf init DIR --domain {domain.name}"
            )


def _generated(schema: Schema, source: TrainingSource) -> Dataset:
    from lpf import domains  # slow to import, and only needed here

    named = str(source.what)
    if named not in domains.domain_names() and not Path(named).is_file():
        raise DatasetError(
            f"{named} is neither a file nor one of the domains {list(domains.domain_names())}. "
            "Nothing was trained. Name a data set (JSONL) or a domain; without a name, training "
            "uses the workspace's own labelled evidence."
        )
    domain = domains.load_domain(named)
    require_domain(schema, domain, domain.predicate)
    dataset = domains.generate(domain, domains.preset(source.preset), seed=source.data_seed)
    return replace(dataset, schema=schema)


def _in_splits(dataset: Dataset, wanted: Sequence[str]) -> tuple[Dataset, tuple[str, ...], bool]:
    """The data set with splits, its predicates, and False; or, if there are too few entities for
    splits, the unchanged data set, its predicates, and True."""
    from lpf.training.material import labelled_with
    from lpf.training.small_data import FEWEST_FOR_SPLITS

    predicates = _chosen(dataset, wanted)
    unsplit = all(entity.split is None for entity in dataset)
    if unsplit and min(_labelled(dataset, name) for name in predicates) < FEWEST_FOR_SPLITS:
        return dataset, predicates, True
    with_splits = assign_splits(dataset, predicates[0], seed=SPLIT_SEED, also=predicates[1:])
    for name in predicates:
        require_trainable(labelled_with(with_splits, name), name)
    return with_splits, predicates, False


def _chosen(dataset: Dataset, wanted: Sequence[str]) -> tuple[str, ...]:
    """In the order of the schema, so that the order in which they are named does not matter."""
    labelled = {name for entity in dataset for name in entity.labels}
    for name in wanted:
        if dataset.schema[name].name not in labelled:
            raise DatasetError(
                f"dataset {dataset.name!r}: no entity is labelled with {name!r}, only with "
                f"{sorted(labelled)}. Nothing was trained. Leave the predicate out, or label it."
            )
    chosen = set(wanted) or labelled
    return tuple(predicate.name for predicate in dataset.schema if predicate.name in chosen)


def _labelled(dataset: Dataset, predicate: str) -> int:
    return sum(predicate in entity.labels for entity in dataset)


def _read(
    workspace: Wiring, dataset: Dataset, reader: Reader, progress: Progress | None
) -> Examples:
    from lpf.training import make_examples, read_features

    folder = workspace.folder / SEARCHES / FEATURES
    workspace.list_copies()
    features = read_features(dataset, reader, folder=folder, progress=progress)
    similarity = checked_similarity(workspace.settings.index.copy_similarity)
    return make_examples(dataset, features, similarity)
