"""An untrained stance reader with two narrow layers, stored as the package stores its weights."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import torch

from lpf.reading.export import STANCE, EncoderSource, file_sha256, installed_weights
from lpf.reading.stored_weights import pack_weights, unpack_weights
from lpf.training.pair_encoder import PairEncoder, load_pair_encoder, pair_encoder_tensors


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
    weights.write_bytes(pack_weights(pair_encoder_tensors(network)))
    tokenizer = installed_weights()
    assert tokenizer is not None
    shutil.copyfile(tokenizer / "tokenizer.json", folder / "tokenizer.json")
    return replace(STANCE, name="tiny-stance", weights_sha256=file_sha256(weights))


def network_of(folder: Path) -> PairEncoder:
    """The torch network with the stored weights."""
    content = (folder / "model.safetensors").read_bytes()
    return load_pair_encoder(unpack_weights(content)).eval()
