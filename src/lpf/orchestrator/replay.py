"""Replay: computes the distribution of a record again.

``replay`` starts from the factors in the record. ``replay_deep`` starts from the texts and the
recorded model: reading, encoding, conversion and combination run again, while credibility, copies
and known facts are taken from the record.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from lpf.combine.combined import Combined, combine_average, normalised
from lpf.combine.learned import LearnedCombiner, join_members
from lpf.combine.paper import PaperParameters, combine_paper, credibility_weight
from lpf.combine.robust import RobustParameters, combine_robust
from lpf.errors import ReplayError, UnknownEvidenceError
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import item_keys
from lpf.items import Segments
from lpf.model.runtime import Runtime
from lpf.orchestrator.known_facts import canonical_probabilities
from lpf.reading import Reader, ReadRequest
from lpf.storage.evidence import EvidenceStore, StoredEvidence, text_commitment
from lpf.types import Float32Array, FloatArray

# How far float32 products may differ if the networks run on batches of another shape.
DEEP_TOLERANCE = 1e-6


@dataclass(frozen=True)
class Replay:
    """What a record says and what was recomputed. ``exact`` means bit for bit."""

    record_id: str
    recorded: Mapping[str, float]
    recomputed: Mapping[str, float]
    deep: bool
    notes: tuple[str, ...] = ()

    @property
    def largest_difference(self) -> float:
        return max(abs(self.recorded[value] - self.recomputed[value]) for value in self.recorded)

    @property
    def exact(self) -> bool:
        return dict(self.recorded) == dict(self.recomputed)

    @property
    def agrees(self) -> bool:
        """From the record's factors: bit for bit. From texts: to 1e-6, with the same top value."""
        close = self.largest_difference <= DEEP_TOLERANCE and self.same_top
        return self.exact or (self.deep and close)

    @property
    def same_top(self) -> bool:
        return _top(self.recorded) == _top(self.recomputed)


def replay(fields: Mapping[str, Any], notes: Sequence[str] = ()) -> Replay:
    """``fields`` are those of a record with its blobs filled in (``LedgerReader.expand``)."""
    return as_replay(fields, recombined(fields, fields.get("factors")), deep=False, notes=notes)


def as_replay(
    fields: Mapping[str, Any], distribution: FloatArray, *, deep: bool, notes: Sequence[str] = ()
) -> Replay:
    values = fields["context"]["values"]
    recomputed = dict(zip(values, distribution.tolist(), strict=True))
    return Replay(fields["record_id"], fields["distribution"], recomputed, deep, tuple(notes))


def recombined(fields: Mapping[str, Any], factors: Mapping[str, Any] | None) -> FloatArray:
    """The distribution [V] that follows from ``factors`` under the record's settings."""
    context, method = fields["context"], fields["method"]
    if method == "canonical":
        fact = fields["facts"][0]
        values = tuple(context["values"])
        return np.array(canonical_probabilities(values, fact["value"], fact["confidence"]))
    base = as_row(fields.get("base", context["log_prior"]))
    if factors is None:
        nothing = np.empty((0, len(base)))
        return _only(normalised(base, nothing, Segments.one(0), {}).distribution)
    if method == "learned":
        members = np.array(factors["members"])[:, None]
        return _only(join_members(members, context["temperature"]))
    potential = np.array(factors["potential"])
    if method == "average":
        return _only(combine_average(potential, Segments.one(len(potential))).distribution)
    if method != "spn":
        raise ReplayError(f"{fields['record_id']}: the method {method!r} is not known here.")
    return _only(_by_circuit(context, factors, potential, base).distribution)


def as_row(listed: Sequence[float | None]) -> FloatArray:
    """Numbers of a record as an array; None means minus infinity."""
    return np.array([-np.inf if number is None else number for number in listed])


def _by_circuit(
    context: Mapping[str, Any], factors: Mapping[str, Any], potential: FloatArray, base: FloatArray
) -> Combined:
    numbers, segments = context["parameters"], Segments.one(len(potential))
    if context["hyperparameters"]["mode"] == "paper":
        parameters = PaperParameters(numbers["alpha"], numbers["weight_form"])
        weight = credibility_weight(np.array(factors["mean_sigma"]), parameters)
        return combine_paper(potential, weight, base, segments)
    credibility = [np.nan if c is None else c for c in factors["credibility"]]
    return combine_robust(
        potential,
        np.array(credibility),
        np.array(context["training_shares"]),
        base,
        segments,
        RobustParameters.from_dict(numbers),
        _numbered(factors.get("group")),
        _numbered(factors.get("source")),
        None if "familiarity" not in factors else np.array(factors["familiarity"]),
    )


def _only(rows: FloatArray) -> FloatArray:
    return np.asarray(rows[0])


def _numbered(listed: Sequence[int] | None) -> Any:
    return None if listed is None else np.array(listed, dtype=np.int64)


def _top(distribution: Mapping[str, float]) -> str:
    return max(distribution, key=distribution.__getitem__)


def replay_deep(
    fields: Mapping[str, Any],
    store: EvidenceStore,
    open_reader: Callable[[], Reader],
    load_model: Callable[[str], Runtime],
) -> Replay:
    """``fields`` are those of a record with its blobs filled in. ReplayError names the text, reader
    or model that is missing."""
    if fields["method"] not in ("spn", "learned", "average") or "evidence_chain" not in fields:
        note = "the answer is not based on evidence: there is no text to read again"
        return as_replay(fields, recombined(fields, None), deep=True, notes=[note])
    context = fields["context"]
    texts = _texts(fields, store)
    reader = _same_reader(fields, open_reader().pinned(context["versions"]["reader"]))
    runtime = load_model(context["versions"]["model"])
    model = runtime.member(0) if context["members"] == "best" else runtime
    requests = [ReadRequest(one.evidence.text_content, one.evidence.claim) for one in texts]
    features = reader.read_many(requests)
    if fields["method"] == "learned":
        return as_replay(fields, _learned(fields, model, features), deep=True)
    factors = _factors(fields, model, features, texts, reader.reader_id)
    return as_replay(fields, recombined(fields, factors), deep=True)


def _texts(fields: Mapping[str, Any], store: EvidenceStore) -> list[StoredEvidence]:
    """The texts that were read, checked against the hashes in the record."""
    texts = []
    for evidence_id, commitment in fields["evidence_chain"]:
        try:
            stored = store.get(evidence_id)
        except UnknownEvidenceError as error:
            raise ReplayError(
                f"{fields['record_id']}: cannot be recomputed from texts: {error} The record's own "
                "factors still give its answer: replay without --deep."
            ) from error
        evidence = stored.evidence
        read = text_commitment(stored.salt, evidence.text_content, evidence.claim)
        if read.hex() != commitment:
            raise ReplayError(
                f"{fields['record_id']}: the text of {evidence_id!r} is not the one that was read "
                "(its salted hash differs). Replay without --deep uses the recorded factors."
            )
        texts.append(stored)
    return texts


def _same_reader(fields: Mapping[str, Any], reader: Reader) -> Reader:
    recorded = fields["context"]["versions"]["reader"]
    if reader.reader_id != recorded:
        raise ReplayError(
            f"{fields['record_id']}: was read by {recorded!r}, the workspace has "
            f"{reader.reader_id!r}. Set that reader in lpf.toml to recompute it from texts."
        )
    return reader


def _learned(fields: Mapping[str, Any], model: Runtime, features: Float32Array) -> FloatArray:
    context = fields["context"]
    combined = LearnedCombiner(model).combine(
        model.encode(features),
        Segments.one(len(features)),
        context["predicate"],
        context["temperature"],
    )
    return np.asarray(combined.distribution[0])


def _factors(
    fields: Mapping[str, Any],
    model: Runtime,
    features: Float32Array,
    texts: Sequence[StoredEvidence],
    reader_id: str,
) -> dict[str, Any]:
    """The record's factors with potentials, sigmas and familiarity computed again."""
    sampler = fields["context"]["sampler"]
    config = ConversionConfig(
        sampler["name"], sampler["n_samples"] or None, sampler["temperature"], sampler["seed"]
    )
    keys = item_keys(
        [one.evidence.text_content for one in texts],
        [one.evidence.claim for one in texts],
        reader_id,
    )
    converter = Converter(model, fields["context"]["predicate"], config)
    recomputed = converter.from_features(features, keys)
    factors = {
        **fields["factors"],
        "potential": recomputed.potential.tolist(),
        "mean_sigma": recomputed.mean_sigma.tolist(),
    }
    if model.familiarity is not None:
        factors["familiarity"] = model.familiarity(features).tolist()
    return factors
