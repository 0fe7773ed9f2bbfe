"""A record's distribution, computed again from the texts and the recorded model.

Everything between text and answer runs anew: reading, encoding, conversion, combination. What the
record says about the items' surroundings (credibility, copies, known facts) is taken from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from lpf.combine.combined import Segments
from lpf.combine.learned import LearnedCombiner
from lpf.errors import ReplayError, UnknownEvidenceError
from lpf.factors.convert import ConversionConfig, Converter
from lpf.factors.keys import item_keys
from lpf.model.runtime import Runtime
from lpf.orchestrator.replay import Replay, as_replay, recombined
from lpf.reading import Reader, ReadRequest
from lpf.storage.evidence import EvidenceStore, StoredEvidence, text_commitment
from lpf.types import Float32Array, FloatArray


def replay_deep(
    fields: Mapping[str, Any],
    store: EvidenceStore,
    open_reader: Callable[[], Reader],
    load_model: Callable[[str], Runtime],
) -> Replay:
    """``fields`` are those of a record with its blobs put in place. ReplayError says plainly which
    text, reader or model is missing."""
    if fields["method"] not in ("spn", "learned", "average") or "evidence_chain" not in fields:
        note = "the answer rests on no evidence: there is no text to read again"
        return as_replay(fields, recombined(fields, None), deep=True, notes=[note])
    context = fields["context"]
    texts = _texts(fields, store)
    reader = _same_reader(fields, open_reader())
    runtime = load_model(context["versions"]["model"])
    model = runtime.member(0) if context["members"] == "best" else runtime
    requests = [ReadRequest(one.evidence.text_content, one.evidence.claim) for one in texts]
    features = reader.read_many(requests)
    if fields["method"] == "learned":
        return as_replay(fields, _learned(fields, model, features), deep=True)
    factors = _factors(fields, model, features, texts, reader.reader_id)
    return as_replay(fields, recombined(fields, factors), deep=True)


def _texts(fields: Mapping[str, Any], store: EvidenceStore) -> list[StoredEvidence]:
    """The very texts that were read, by the hashes that the record keeps."""
    found = []
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
        found.append(stored)
    return found


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
    """The record's factors with potentials and sigmas made anew."""
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
    made = converter.from_features(features, keys)
    return {
        **fields["factors"],
        "potential": made.potential.tolist(),
        "mean_sigma": made.mean_sigma.tolist(),
    }
