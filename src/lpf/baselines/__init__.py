"""The methods that LPF is compared with, and LPF itself, behind one ``fit``/``predict_proba``.

All read the same features and splits and are trained with the same budget; a temperature
(``with_temperature``) makes their probabilities comparable. Names are loaded when first used: most
of them import torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lpf.baselines.dawid_skene import Votes, fit_confusions
    from lpf.baselines.interface import FittedMethod, Method, Standing
    from lpf.baselines.item_models import ItemModels
    from lpf.baselines.linear import (
        CLAIM_ONLY,
        ClaimOnly,
        Labelled,
        LogisticModel,
        fit_regression,
    )
    from lpf.baselines.lpf_methods import FittedLpf, Lpf
    from lpf.baselines.methods import METHODS, Factory, MethodEntry, Shared, make_methods, needs_of
    from lpf.baselines.tempered import Temperature, Tempered, with_temperature
    from lpf.baselines.transformer import TRANSFORMER, TransformerConfig
    from lpf.baselines.zero_label import ZERO_LABEL, ZeroLabel

_HOMES = {
    "CLAIM_ONLY": "linear",
    "METHODS": "methods",
    "TRANSFORMER": "transformer",
    "ZERO_LABEL": "zero_label",
    "ClaimOnly": "linear",
    "Factory": "methods",
    "FittedLpf": "lpf_methods",
    "FittedMethod": "interface",
    "ItemModels": "item_models",
    "Labelled": "linear",
    "LogisticModel": "linear",
    "Lpf": "lpf_methods",
    "Method": "interface",
    "MethodEntry": "methods",
    "Shared": "methods",
    "Standing": "interface",
    "Temperature": "tempered",
    "Tempered": "tempered",
    "TransformerConfig": "transformer",
    "Votes": "dawid_skene",
    "ZeroLabel": "zero_label",
    "fit_confusions": "dawid_skene",
    "fit_regression": "linear",
    "make_methods": "methods",
    "needs_of": "methods",
    "with_temperature": "tempered",
}

__all__ = [
    "CLAIM_ONLY",
    "METHODS",
    "TRANSFORMER",
    "ZERO_LABEL",
    "ClaimOnly",
    "Factory",
    "FittedLpf",
    "FittedMethod",
    "ItemModels",
    "Labelled",
    "LogisticModel",
    "Lpf",
    "Method",
    "MethodEntry",
    "Shared",
    "Standing",
    "Temperature",
    "Tempered",
    "TransformerConfig",
    "Votes",
    "ZeroLabel",
    "fit_confusions",
    "fit_regression",
    "make_methods",
    "needs_of",
    "with_temperature",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(f"lpf.baselines.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'lpf.baselines' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
