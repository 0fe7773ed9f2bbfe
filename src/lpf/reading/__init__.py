"""Readers: text to features. Importing this loads neither torch nor ONNX Runtime."""

from lpf.reading.export import export_minilm
from lpf.reading.factory import claim_reader, open_reader
from lpf.reading.minilm import MiniLMReader
from lpf.reading.pair import PairReader, is_pair
from lpf.reading.reader import Reader, ReadRequest
from lpf.reading.sentence_transformer import SentenceTransformerReader
from lpf.reading.stance import STANCES, StanceReader, stance_is_installed

__all__ = [
    "STANCES",
    "MiniLMReader",
    "PairReader",
    "ReadRequest",
    "Reader",
    "SentenceTransformerReader",
    "StanceReader",
    "claim_reader",
    "export_minilm",
    "is_pair",
    "open_reader",
    "stance_is_installed",
]
