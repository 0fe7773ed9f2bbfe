"""Writes an untrained transformer with one narrow layer to a folder."""

from __future__ import annotations

from pathlib import Path

import torch

from lpf.reading.export import installed_weights


def tiny_transformer(folder: Path, *, positions: int = 256, seed: int = 1) -> Path:
    """It reads the words of the default reader's."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    words = AutoTokenizer.from_pretrained(installed_weights(), local_files_only=True)
    words.save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=positions,
    )
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        BertModel(config).save_pretrained(folder)
    return folder
