"""Titles of methods for people, and whether a method is ours, a rival or a reference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

Standing = Literal["ours", "rival", "reference"]

TITLES: Mapping[str, str] = {
    "lpf_robust": "LPF-SPN, robust ensemble",
    "lpf_chosen": "LPF-SPN, robust, reading chosen",
    "lpf_robust_single": "LPF-SPN, robust, one network",
    "lpf_paper": "LPF-SPN, paper mode",
    "lpf_paper_best": "LPF-SPN, paper's best setting",
    "lpf_learned": "LPF-Learned, repaired",
    "lpf_learned_published": "LPF-Learned, as published",
    "vae_only": "VAE-Only (factors averaged)",
    "vae_only_ensemble": "VAE-Only, ensemble",
    "deterministic_average": "Classifier, averaged",
    "deterministic_ensemble_average": "Classifier ensemble, averaged",
    "spn_only": "SPN-Only (classifier in the circuit)",
    "transformer": "BERT-style (MiniLM's top layer)",
    "edl_aggregated": "EDL-Aggregated",
    "edl_individual": "EDL-Individual",
    "edl_individual_broken": "EDL-Individual, with its fault",
    "relational_graph": "R-GCN",
    "logistic_mean": "Logistic regression, mean embedding",
    "deep_sets": "DeepSets",
    "attention_pooling": "Attention pooling",
    "majority_vote": "Majority vote",
    "confidence_vote": "Confidence-weighted vote",
    "stacking": "Stacking",
    "dawid_skene": "Dawid-Skene",
    "claim_only": "The claim alone",
    "prior": "Prior alone",
    "perfect_reader": "Perfect reader",
    "oracle": "Oracle",
}
_REFERENCES = ("prior", "perfect_reader", "oracle", "claim_only")
_OURS = ("lpf_robust", "lpf_chosen", "lpf_robust_single", "lpf_learned")


LANGUAGE_MODEL = "llm:"


def title_of(method: str) -> str:
    if method.startswith(LANGUAGE_MODEL):
        return f"{method.removeprefix(LANGUAGE_MODEL)}, zero-shot"
    return TITLES.get(method, method)


def standing_of(method: str) -> Standing:
    """``ours`` is what we recommend; paper mode counts as a rival."""
    if method in _REFERENCES:
        return "reference"
    return "ours" if method in _OURS else "rival"
