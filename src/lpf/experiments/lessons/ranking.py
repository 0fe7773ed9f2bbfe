"""The best items of each entity, chosen as a question chooses them."""

from __future__ import annotations

from dataclasses import replace

from lpf.datasets import Dataset, DatasetEntity
from lpf.errors import ConfigError
from lpf.index.ranking import Ranker, RankingConfig, best_first
from lpf.storage.times import to_micros


def best_items(dataset: Dataset, top_k: int) -> Dataset:
    """At most ``top_k`` items an entity: by credibility and age as of its newest item, in the order
    they stood in. What a generator knows of the entity is dropped where items are."""
    if top_k < 1:
        raise ConfigError(f"top_k: must be 1 or above, got {top_k}. Nothing was left out.")
    ranker = Ranker(RankingConfig())
    return replace(
        dataset, entities=tuple(_cut(entity, top_k, ranker) for entity in dataset.entities)
    )


def _cut(entity: DatasetEntity, top_k: int, ranker: Ranker) -> DatasetEntity:
    if len(entity.evidence) <= top_k:
        return entity
    moments = [
        None if item.timestamp is None else to_micros(item.timestamp) for item in entity.evidence
    ]
    newest = max((moment for moment in moments if moment is not None), default=0)
    scores = ranker.scores([item.credibility for item in entity.evidence], moments, newest)
    kept = sorted(best_first(scores, moments)[:top_k])
    return replace(entity, evidence=tuple(entity.evidence[place] for place in kept), truth=None)
