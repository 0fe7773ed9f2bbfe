"""Weights in a safetensors file, with matrices in int8 if they should take a quarter of the space.

A matrix ``NAME`` [O, I] in int8 comes with ``NAME.scale`` [O, 1], one float32 per row, that is per
output of a linear layer and per entry of an embedding table. The int8 graph rounds weights the same
way, so it loses nothing more.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

import numpy as np

from lpf.reading.graph import Array, quantise

SCALE: Final = ".scale"
FEWEST_ROWS: Final = 16  # smaller matrices stay in float32: they take no space


def pack_weights(tensors: Mapping[str, Array], halves: Collection[str] = ()) -> bytes:
    """The content of a file with these float32 tensors; the same tensors give the same bytes.
    Matrices named in ``halves`` are stored in float16 instead of int8."""
    from safetensors.numpy import save

    packed: dict[str, Array] = {}
    for name in sorted(tensors):
        tensor = np.ascontiguousarray(tensors[name], np.float32)
        if tensor.ndim != 2 or len(tensor) < FEWEST_ROWS:
            packed[name] = tensor
        elif name in halves:
            packed[name] = tensor.astype(np.float16)
        else:
            packed[name], packed[f"{name}{SCALE}"] = quantise(tensor, axis=1)
    content: bytes = save(packed)
    return content


def unpack_weights(content: bytes) -> dict[str, Array]:
    """The tensors of a file in float32, from int8 with scales, float16 or float32. Integers without
    a scale, such as position ids, stay as they are."""
    from safetensors.numpy import load

    stored = load(content)
    tensors: dict[str, Array] = {}
    for name, tensor in stored.items():
        scale = stored.get(f"{name}{SCALE}")
        if scale is not None:
            tensors[name] = tensor.astype(np.float32) * scale
        elif not (name.endswith(SCALE) and name.removesuffix(SCALE) in stored):
            tensors[name] = tensor.astype(np.float32) if tensor.dtype == np.float16 else tensor
    return tensors
