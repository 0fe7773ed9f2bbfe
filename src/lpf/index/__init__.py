"""Finds the items of a question, and items near a text. Only a search by text imports FAISS."""

from lpf.index.copies import DEFAULT_SIMILARITY
from lpf.index.faiss_index import IndexConfig
from lpf.index.features import FeatureSource, readers_used
from lpf.index.ranking import RankingConfig
from lpf.index.retrieve import EvidenceIndex
from lpf.index.search import Hit, VectorIndex
from lpf.index.vector_file import Manifest, forget_rows

__all__ = [
    "DEFAULT_SIMILARITY",
    "EvidenceIndex",
    "FeatureSource",
    "Hit",
    "IndexConfig",
    "Manifest",
    "RankingConfig",
    "VectorIndex",
    "forget_rows",
    "readers_used",
]
