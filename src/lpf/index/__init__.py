"""Which items answer a question, and which are near a text. FAISS is imported by a search only."""

from lpf.index.copies import DEFAULT_SIMILARITY
from lpf.index.faiss_index import IndexConfig
from lpf.index.features import FeatureSource, pair_text_part
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
    "pair_text_part",
]
