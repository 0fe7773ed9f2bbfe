"""Which items answer a question, and which are near a text. FAISS is imported by a search only."""

from lpf.index.copies import DEFAULT_SIMILARITY
from lpf.index.features import FeatureSource, pair_text_part
from lpf.index.files import Manifest
from lpf.index.forgetting import forget_rows
from lpf.index.kinds import IndexConfig
from lpf.index.ranking import RankingConfig
from lpf.index.retrieve import EvidenceIndex, Retrieved
from lpf.index.search import Hit, VectorIndex

__all__ = [
    "DEFAULT_SIMILARITY",
    "EvidenceIndex",
    "FeatureSource",
    "Hit",
    "IndexConfig",
    "Manifest",
    "RankingConfig",
    "Retrieved",
    "VectorIndex",
    "forget_rows",
    "pair_text_part",
]
