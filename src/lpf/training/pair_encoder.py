"""The stance reader as a torch network, for training: a claim and a text in, a stance out.

BERT layers over ``[CLS] claim [SEP] text [SEP]``, then a head on the class token, the mean of the
claim's tokens, the mean of the text's tokens, their absolute difference and their product. The
head's hidden vector is what the reader hands on as features (``reading/stance.py`` runs the same
network on ONNX Runtime, from the same tensors).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from lpf.types import Float32Array

HEADS = 12
EPSILON = 1e-12
POOLED = 5  # class token, claim, text, |difference|, product
STANCES = ("supports", "refutes", "neutral")
CLASS_TOKEN, SEPARATOR_TOKEN = 101, 102


@dataclass(frozen=True)
class PairBatch:
    """Tokens of claims and texts: ``ids`` and ``segments`` [B, S] (0 claim, 1 text), ``lengths``
    [B]."""

    ids: Tensor
    segments: Tensor
    lengths: Tensor

    @classmethod
    def of(cls, pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> PairBatch:
        """From the token ids of each claim and text, without special tokens."""
        rows = [(len(claim) + 2, len(claim) + len(text) + 3) for claim, text in pairs]
        longest = max(total for _, total in rows)
        ids = np.zeros((len(pairs), longest), np.int64)
        segments = np.zeros((len(pairs), longest), np.int64)
        for row, ((claim, text), (start, total)) in enumerate(zip(pairs, rows, strict=True)):
            ids[row, 0] = CLASS_TOKEN
            ids[row, 1 : start - 1] = claim
            ids[row, start - 1] = SEPARATOR_TOKEN
            ids[row, start : total - 1] = text
            ids[row, total - 1] = SEPARATOR_TOKEN
            segments[row, start:total] = 1
        lengths = torch.tensor([total for _, total in rows])
        return cls(torch.from_numpy(ids), torch.from_numpy(segments), lengths)


class PairLayer(nn.Module):
    """One post-norm BERT layer; queries, keys and values come from one matrix product."""

    def __init__(self, width: int, inner: int, dropout: float) -> None:
        super().__init__()
        self.query_key_value = nn.Linear(width, 3 * width)
        self.attended = nn.Linear(width, width)
        self.attended_norm = nn.LayerNorm(width, EPSILON)
        self.wide = nn.Linear(width, inner)
        self.narrow = nn.Linear(inner, width)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        batch, tokens, width = states.shape
        split = self.query_key_value(states).view(batch, tokens, 3, HEADS, width // HEADS)
        query, key, value = split.permute(2, 0, 3, 1, 4).unbind(0)
        # Written out: the backward pass of torch's fused attention is five times slower on CPUs.
        scores = (query * (width // HEADS) ** -0.5) @ key.transpose(-1, -2) + mask
        context = torch.softmax(scores, dim=-1).to(value.dtype) @ value
        context = context.transpose(1, 2).reshape(batch, tokens, width)
        states = self.attended_norm(states + self.dropout(self.attended(context)))
        change = self.narrow(functional.gelu(self.wide(states)))
        normed: Tensor = self.norm(states + self.dropout(change))
        return normed


class PairEncoder(nn.Module):
    """Claims with texts to a hidden vector [B, width] and the logits of the stances [B, 3]."""

    def __init__(self, width: int, layers: int, *, inner: int = 1536, dropout: float = 0.1) -> None:
        super().__init__()
        self.words = nn.Embedding(30522, width)
        self.places = nn.Embedding(512, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, EPSILON)
        self.layers = nn.ModuleList(PairLayer(width, inner, dropout) for _ in range(layers))
        self.dropout = nn.Dropout(dropout)
        self.hidden = nn.Linear(POOLED * width, width)
        self.stance = nn.Linear(width, len(STANCES))

    def forward(self, batch: PairBatch) -> tuple[Tensor, Tensor]:
        return self.head(self.upper(self.embedded(batch), batch), batch)

    def embedded(self, batch: PairBatch) -> Tensor:
        """The input of the first layer [B, S, width]."""
        places = torch.arange(batch.ids.shape[1])
        found = self.words(batch.ids) + self.segments(batch.segments) + self.places(places)
        states: Tensor = self.dropout(self.norm(found))
        return states

    def upper(self, states: Tensor, batch: PairBatch) -> Tensor:
        """The states after all layers."""
        within = torch.arange(batch.ids.shape[1]) < batch.lengths[:, None]
        mask = torch.zeros(within.shape, dtype=states.dtype).masked_fill_(~within, -1e9)
        if torch.is_autocast_enabled("cpu"):
            mask = mask.to(torch.bfloat16)
        for layer in self.layers:
            states = layer(states, mask[:, None, None, :])
        return states

    def head(self, states: Tensor, batch: PairBatch) -> tuple[Tensor, Tensor]:
        places = torch.arange(batch.ids.shape[1])
        is_text = (batch.segments == 1).to(states.dtype)
        is_claim = ((places < batch.lengths[:, None]) & (batch.segments == 0)).to(states.dtype)
        claim, text = _mean(states, is_claim), _mean(states, is_text)
        pooled = torch.cat([states[:, 0], claim, text, (claim - text).abs(), claim * text], dim=1)
        hidden = functional.gelu(self.hidden(self.dropout(pooled)))
        return hidden, self.stance(self.dropout(hidden))

    def freeze_embeddings(self) -> None:
        """Words seen in few training texts keep the meaning they came with."""
        for table in (self.words, self.places):
            table.weight.requires_grad_(False)


def _mean(states: Tensor, weights: Tensor) -> Tensor:
    return (weights[:, None, :] @ states)[:, 0] / weights.sum(dim=1, keepdim=True)


# A tensor of the published BERT format, and the parameter here that holds it.
_OUTSIDE = {
    "embeddings.word_embeddings.weight": "words.weight",
    "embeddings.position_embeddings.weight": "places.weight",
    "embeddings.token_type_embeddings.weight": "segments.weight",
    "embeddings.LayerNorm.weight": "norm.weight",
    "embeddings.LayerNorm.bias": "norm.bias",
}
_IN_LAYER = {
    "attention.output.dense": "attended",
    "attention.output.LayerNorm": "attended_norm",
    "intermediate.dense": "wide",
    "output.dense": "narrow",
    "output.LayerNorm": "norm",
}
_HEAD = ("hidden.weight", "hidden.bias", "stance.weight", "stance.bias")
_ROLES = ("query", "key", "value")


def _names(layers: int) -> Iterator[tuple[str, str]]:
    """(published name, parameter) of every tensor but queries, keys and values."""
    yield from _OUTSIDE.items()
    for layer in range(layers):
        for published, own in _IN_LAYER.items():
            for part in ("weight", "bias"):
                yield f"encoder.layer.{layer}.{published}.{part}", f"layers.{layer}.{own}.{part}"


def load_pair_encoder(tensors: Mapping[str, Float32Array], *, dropout: float = 0.1) -> PairEncoder:
    """A network with the given tensors, named as BERT publishes them. Without those of a head
    (``hidden``, ``stance``) it starts with a random one, drawn from torch's generator."""
    layers = 1 + max(int(name.split(".")[2]) for name in tensors if name.startswith("encoder."))
    width = tensors["embeddings.LayerNorm.weight"].shape[0]
    inner = tensors["encoder.layer.0.intermediate.dense.bias"].shape[0]
    network = PairEncoder(width, layers, inner=inner, dropout=dropout)
    state = network.state_dict()
    for published, own in _names(layers):
        state[own] = torch.tensor(tensors[published])
    for layer in range(layers):
        for part in ("weight", "bias"):
            names = [f"encoder.layer.{layer}.attention.self.{role}.{part}" for role in _ROLES]
            joined = np.concatenate([tensors[name] for name in names])
            state[f"layers.{layer}.query_key_value.{part}"] = torch.tensor(joined)
    for name in _HEAD:
        if name in tensors:
            state[name] = torch.tensor(tensors[name])
    network.load_state_dict(state)
    return network


def pair_encoder_tensors(network: PairEncoder) -> dict[str, Float32Array]:
    """The tensors of a network, named as BERT publishes them; the inverse of
    ``load_pair_encoder``."""
    state = {name: value.detach().float().numpy() for name, value in network.state_dict().items()}
    layers = len(network.layers)
    tensors = {published: state[own] for published, own in _names(layers)}
    for layer in range(layers):
        for part in ("weight", "bias"):
            thirds = np.split(state[f"layers.{layer}.query_key_value.{part}"], 3)
            for role, third in zip(_ROLES, thirds, strict=True):
                tensors[f"encoder.layer.{layer}.attention.self.{role}.{part}"] = third
    return tensors | {name: state[name] for name in _HEAD}
