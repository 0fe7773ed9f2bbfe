"""An untrained stance reader with two narrow layers and few words, stored as the package stores its
weights."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import torch

from lpf.reading.export import STANCE, EncoderSource, file_sha256, installed_weights
from lpf.reading.stored_weights import pack_weights, unpack_weights
from lpf.training.pair_encoder import PairEncoder, load_pair_encoder, pair_encoder_tensors

# The first words of the vocabulary: letters, parts of words, and frequent words.
WORDS = 8000
TABLE = "embeddings.word_embeddings.weight"


def tiny_stance(folder: Path, *, seed: int = 1) -> EncoderSource:
    """Write weights and tokenizer into ``folder``, the ``weights_dir`` of a StanceReader."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = PairEncoder(384, 2, inner=48)
        # As BERT starts: torch's own start gives embeddings that drown everything else.
        for table in (network.words, network.places, network.segments):
            torch.nn.init.normal_(table.weight, std=0.02)
    folder.mkdir(parents=True, exist_ok=True)
    weights = folder / "model.safetensors"
    tensors = pair_encoder_tensors(network)
    tensors[TABLE] = tensors[TABLE][:WORDS]
    weights.write_bytes(pack_weights(tensors))
    tokenizer = installed_weights()
    assert tokenizer is not None
    content = json.loads((tokenizer / "tokenizer.json").read_text())
    known = content["model"]["vocab"]
    content["model"]["vocab"] = {word: place for word, place in known.items() if place < WORDS}
    words = folder / "tokenizer.json"
    words.write_text(json.dumps(content))
    return replace(
        STANCE,
        name="tiny-stance",
        weights_sha256=file_sha256(weights),
        tokenizer_sha256=file_sha256(words),
    )


def network_of(folder: Path) -> PairEncoder:
    """The torch network with the stored weights."""
    content = (folder / "model.safetensors").read_bytes()
    return load_pair_encoder(unpack_weights(content)).eval()
